"""The quorum of the recorded incident is in the capture as Kafka's own tool printed it and as the nodes logged it."""

from datetime import UTC, datetime

from kafkascope.capture.exchanges.exchange import Exchange
from tests.capture.same_exchanges import captured
from tests.capture.truth_events import Event, body, events, exchanges
from tests.captures import recording

FENCED_LEADER_EPOCH = 74


def _quorum(who: str) -> list[Event]:
    """The partition of each DescribeQuorum answer that the client took; every one is without error here. A frozen node
    answers when it is thawed, long after the client has given up."""
    partitions = []
    for exchange in sorted(exchanges("quorum", "DescribeQuorum", who), key=_answered_at):
        given_up = [e["at"] / 1e6 for e in events("quorum", "refused")]
        if exchange.response is None or any(_asked_at(exchange) < at < _answered_at(exchange) for at in given_up):
            continue
        (topic,) = body(exchange, "response")["topics"]
        (partition,) = topic["partitions"]
        assert partition["errorCode"] == 0
        partitions.append(partition)
    return partitions


def _asked_at(exchange: Exchange) -> float:
    return exchange.request_at.timestamp() if exchange.request_at else 0.0


def _answered_at(exchange: Exchange) -> float:
    return exchange.response_at.timestamp() if exchange.response_at else 0.0


def test_quorum_answers_are_those_that_the_admin_client_gave() -> None:
    names = ("replicaId", "logEndOffset", "lastFetchTimestamp", "lastCaughtUpTimestamp")

    def replicas(states: list[Event]) -> list[Event]:
        return [
            dict(zip(("id", "logEndOffset", "lastFetch", "lastCaughtUp"), (s[name] for name in names), strict=True))
            for s in states
        ]

    actual = [
        (p["leaderId"], p["leaderEpoch"], p["highWatermark"], replicas(p["currentVoters"]), replicas(p["observers"]))
        for p in _quorum("watch")
    ]
    expected = [
        (e["leader"], e["epoch"], e["highWatermark"], e["voters"], e["observers"])
        for e in events("quorum", "quorum", "watch")
    ]
    assert actual == expected
    assert len({leader for leader, *_ in actual}) == 2


def test_leaders_epochs_and_lags_are_those_that_kafkas_own_tool_printed() -> None:
    printed = events("quorum", "printed", "watch")
    for printout, partition in zip(printed, _quorum("quorum-tool"), strict=True):
        assert printout["status"] == 0
        if printout["command"] == "--replication":
            assert [line.split() for line in printout["lines"][1:]] == _replication(partition)
        else:
            figures = dict(line.split(":", 1) for line in printout["lines"])
            shown = [int(figures[name]) for name in ("LeaderId", "LeaderEpoch", "HighWatermark", "MaxFollowerLag")]
            leads = _end(partition, partition["leaderId"])
            behind = max(leads - state["logEndOffset"] for state in _replicas(partition))
            assert shown == [partition["leaderId"], partition["leaderEpoch"], partition["highWatermark"], behind]
    assert {printout["command"] for printout in printed} == {"--replication", "--status"}


def _replicas(partition: Event) -> list[Event]:
    return [*partition["currentVoters"], *partition["observers"]]


def _end(partition: Event, replica: int) -> int:
    return next(int(state["logEndOffset"]) for state in _replicas(partition) if state["replicaId"] == replica)


def _replication(partition: Event) -> list[list[str]]:
    """The tool's rows: the leader, its followers, the observers. It subtracts where the log end is not known, too."""
    leader = partition["leaderId"]
    leads = _end(partition, leader)
    voters = {state["replicaId"] for state in partition["currentVoters"]}
    names = ("lastFetchTimestamp", "lastCaughtUpTimestamp")
    rows = []
    for state in sorted(_replicas(partition), key=lambda state: (state["replicaId"] != leader, state["replicaId"])):
        number, end = state["replicaId"], state["logEndOffset"]
        role = "Leader" if number == leader else "Follower" if number in voters else "Observer"
        rows.append([number, state["replicaDirectoryId"], end, leads - end, *(state[name] for name in names), role])
    return [[str(value) for value in row] for row in rows]


def _raft(*roles: str) -> set[tuple[int, int]]:
    return {(int(e["who"][5:]), e["epoch"]) for e in events("quorum", "raft") if e["role"] in roles}


def _partitions(api: str, kind: str = "request") -> list[tuple[Exchange, Event]]:
    """Of the metadata log, by exchange."""
    partitions = []
    for exchange in captured("quorum"):
        if exchange.api == api and exchange.response is not None:
            topics = body(exchange, kind)["topics" if kind == "request" else "responses"]
            partitions += [(exchange, partition) for topic in topics for partition in topic["partitions"]]
    return partitions


def test_elections_are_those_that_the_nodes_logged() -> None:
    """A prospective node asks for pre-votes, a candidate for votes, a leader announces itself (KIP-996)."""
    votes = [partition for _, partition in _partitions("Vote")]
    candidacies = {(partition["replicaId"], partition["replicaEpoch"], partition["preVote"]) for partition in votes}
    assert {(node, epoch) for node, epoch, before in candidacies if before} == _raft("Prospective")
    assert {(node, epoch) for node, epoch, before in candidacies if not before} == _raft("Candidate")
    begun = {(partition["leaderId"], partition["leaderEpoch"]) for _, partition in _partitions("BeginQuorumEpoch")}
    assert begun == _raft("Leader")
    assert len(begun) == 2


def test_a_killed_leader_comes_back_resigned_and_is_told_that_its_epoch_is_over() -> None:
    ended = {(partition["leaderId"], partition["leaderEpoch"]) for _, partition in _partitions("EndQuorumEpoch")}
    (killed,) = (e["node"] for e in events("quorum", "killed"))
    assert ended == {(node, epoch) for node, epoch in _raft("Resigned") if node == killed}
    answers = [
        body(exchange, "response")["topics"][0]["partitions"][0] for exchange, _ in _partitions("EndQuorumEpoch")
    ]
    assert {answer["errorCode"] for answer in answers} == {FENCED_LEADER_EPOCH}


def test_followers_fetch_from_the_leader_that_they_logged() -> None:
    ports = {port: node for node, listeners in recording("quorum")["ports"].items() for port in listeners.values()}
    fetches = set()
    for exchange, partition in _partitions("Fetch"):
        replica = body(exchange, "request").get("replicaState", {}).get("replicaId", -1)
        answer = body(exchange, "response")["responses"]
        if replica > 0 and answer and answer[0]["partitions"][0]["errorCode"] == 0 and _metadata_log(exchange):
            leader = int(ports[int(exchange.broker_address.rpartition(":")[2])])
            fetches.add((replica, leader, partition["currentLeaderEpoch"]))
    logged = {(int(e["who"][5:]), e["leader"], e["epoch"]) for e in events("quorum", "raft") if e["role"] == "Follower"}
    assert fetches == logged


def _metadata_log(exchange: Exchange) -> bool:
    return exchange.client_id is not None and exchange.client_id.startswith("raft-client-")


def test_log_ends_that_the_leader_told_are_the_offsets_that_its_followers_asked_for() -> None:
    """Lag has a history even where nobody asks: a replica's last Fetch before the answer has its log end."""
    fetched = []
    for exchange in captured("quorum"):
        if exchange.api == "Fetch" and _metadata_log(exchange) and exchange.request_at is not None:
            fetch_body = body(exchange, "request")
            fetched.append(
                (exchange.request_at, fetch_body["replicaState"]["replicaId"], fetch_body["topics"][0]["partitions"][0])
            )
    compared = 0
    for exchange in captured("quorum"):
        inner = exchange.inner()
        if len(inner) < 2 or inner[1].name != "DescribeQuorumResponse" or inner[1].body is None:
            continue
        assert exchange.request_at is not None and exchange.response_at is not None
        (topic,) = inner[1].body.value["topics"]
        (partition,) = topic["partitions"]
        for state in _replicas(partition):
            if state["replicaId"] == partition["leaderId"]:
                continue
            # a replica that has not fetched from this leader yet is at −1
            ends = [(datetime.min.replace(tzinfo=UTC), -1)] + [
                (at, place["fetchOffset"])
                for at, replica, place in fetched
                if (replica, place["currentLeaderEpoch"]) == (state["replicaId"], partition["leaderEpoch"])
            ]
            before = [end for at, end in ends if at < exchange.request_at][-1]
            # or one that came while the leader answered
            meanwhile = [end for at, end in ends if exchange.request_at <= at < exchange.response_at]
            assert state["logEndOffset"] in [before, *meanwhile]
            compared += 1
    assert compared > 50
