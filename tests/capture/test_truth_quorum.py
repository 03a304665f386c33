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
    found = []
    for one in sorted(exchanges("quorum", "DescribeQuorum", who), key=_answered_at):
        given_up = [e["at"] / 1e6 for e in events("quorum", "refused")]
        if one.response is None or any(_asked_at(one) < at < _answered_at(one) for at in given_up):
            continue
        (topic,) = body(one, "response")["topics"]
        (partition,) = topic["partitions"]
        assert partition["errorCode"] == 0
        found.append(partition)
    return found


def _asked_at(one: Exchange) -> float:
    return one.request_at.timestamp() if one.request_at else 0.0


def _answered_at(one: Exchange) -> float:
    return one.response_at.timestamp() if one.response_at else 0.0


def test_quorum_answers_are_those_that_the_admin_client_gave() -> None:
    names = ("replicaId", "logEndOffset", "lastFetchTimestamp", "lastCaughtUpTimestamp")

    def replicas(states: list[Event]) -> list[Event]:
        return [
            dict(zip(("id", "logEndOffset", "lastFetch", "lastCaughtUp"), (s[name] for name in names), strict=True))
            for s in states
        ]

    found = [
        (p["leaderId"], p["leaderEpoch"], p["highWatermark"], replicas(p["currentVoters"]), replicas(p["observers"]))
        for p in _quorum("watch")
    ]
    wanted = [
        (e["leader"], e["epoch"], e["highWatermark"], e["voters"], e["observers"])
        for e in events("quorum", "quorum", "watch")
    ]
    assert found == wanted
    assert len({leader for leader, *_ in found}) == 2


def test_leaders_epochs_and_lags_are_those_that_kafkas_own_tool_printed() -> None:
    printed = events("quorum", "printed", "watch")
    for told, partition in zip(printed, _quorum("quorum-tool"), strict=True):
        assert told["status"] == 0
        if told["command"] == "--replication":
            assert [line.split() for line in told["lines"][1:]] == _replication(partition)
        else:
            figures = dict(line.split(":", 1) for line in told["lines"])
            shown = [int(figures[name]) for name in ("LeaderId", "LeaderEpoch", "HighWatermark", "MaxFollowerLag")]
            leads = _end(partition, partition["leaderId"])
            behind = max(leads - state["logEndOffset"] for state in _replicas(partition))
            assert shown == [partition["leaderId"], partition["leaderEpoch"], partition["highWatermark"], behind]
    assert {told["command"] for told in printed} == {"--replication", "--status"}


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
    found = []
    for one in captured("quorum"):
        if one.api == api and one.response is not None:
            topics = body(one, kind)["topics" if kind == "request" else "responses"]
            found += [(one, partition) for topic in topics for partition in topic["partitions"]]
    return found


def test_elections_are_those_that_the_nodes_logged() -> None:
    """A prospective node asks for pre-votes, a candidate for votes, a leader announces itself (KIP-996)."""
    votes = [told for _, told in _partitions("Vote")]
    asked = {(told["replicaId"], told["replicaEpoch"], told["preVote"]) for told in votes}
    assert {(node, epoch) for node, epoch, before in asked if before} == _raft("Prospective")
    assert {(node, epoch) for node, epoch, before in asked if not before} == _raft("Candidate")
    begun = {(told["leaderId"], told["leaderEpoch"]) for _, told in _partitions("BeginQuorumEpoch")}
    assert begun == _raft("Leader")
    assert len(begun) == 2


def test_a_killed_leader_comes_back_resigned_and_is_told_that_its_epoch_is_over() -> None:
    ended = {(told["leaderId"], told["leaderEpoch"]) for _, told in _partitions("EndQuorumEpoch")}
    (killed,) = (e["node"] for e in events("quorum", "killed"))
    assert ended == {(node, epoch) for node, epoch in _raft("Resigned") if node == killed}
    answers = [body(one, "response")["topics"][0]["partitions"][0] for one, _ in _partitions("EndQuorumEpoch")]
    assert {answer["errorCode"] for answer in answers} == {FENCED_LEADER_EPOCH}


def test_followers_fetch_from_the_leader_that_they_logged() -> None:
    ports = {port: node for node, listeners in recording("quorum")["ports"].items() for port in listeners.values()}
    found = set()
    for one, told in _partitions("Fetch"):
        replica = body(one, "request").get("replicaState", {}).get("replicaId", -1)
        answer = body(one, "response")["responses"]
        if replica > 0 and answer and answer[0]["partitions"][0]["errorCode"] == 0 and _metadata_log(one):
            leader = int(ports[int(one.broker_address.rpartition(":")[2])])
            found.add((replica, leader, told["currentLeaderEpoch"]))
    logged = {(int(e["who"][5:]), e["leader"], e["epoch"]) for e in events("quorum", "raft") if e["role"] == "Follower"}
    assert found == logged


def _metadata_log(one: Exchange) -> bool:
    return one.client_id is not None and one.client_id.startswith("raft-client-")


def test_log_ends_that_the_leader_told_are_the_offsets_that_its_followers_asked_for() -> None:
    """Lag has a history even where nobody asks: a replica's last Fetch before the answer has its log end."""
    fetched = []
    for one in captured("quorum"):
        if one.api == "Fetch" and _metadata_log(one) and one.request_at is not None:
            asked = body(one, "request")
            fetched.append((one.request_at, asked["replicaState"]["replicaId"], asked["topics"][0]["partitions"][0]))
    compared = 0
    for one in captured("quorum"):
        inner = one.inner()
        if len(inner) < 2 or inner[1].name != "DescribeQuorumResponse" or inner[1].body is None:
            continue
        assert one.request_at is not None and one.response_at is not None
        (topic,) = inner[1].body.value["topics"]
        (told,) = topic["partitions"]
        for state in _replicas(told):
            if state["replicaId"] == told["leaderId"]:
                continue
            # a replica that has not fetched from this leader yet is at −1
            ends = [(datetime.min.replace(tzinfo=UTC), -1)] + [
                (at, place["fetchOffset"])
                for at, replica, place in fetched
                if (replica, place["currentLeaderEpoch"]) == (state["replicaId"], told["leaderEpoch"])
            ]
            before = [end for at, end in ends if at < one.request_at][-1]
            # or one that came while the leader answered
            meanwhile = [end for at, end in ends if one.request_at <= at < one.response_at]
            assert state["logEndOffset"] in [before, *meanwhile]
            compared += 1
    assert compared > 50
