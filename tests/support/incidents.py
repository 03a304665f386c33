"""Rows about a recorded incident in, nothing out: each check fails where they are not what its Java programs, or
Kafka's own tool, logged meanwhile. The rows are those of `health/`, however they were made."""

from collections.abc import Iterable
from typing import Any

from kafkascope.health.quorum.rows import QuorumHappening, QuorumReplica
from kafkascope.health.share.events import Delivery
from kafkascope.health.streams.rows import LostMember, StreamsTask
from tests.captures import truth

HEARTBEAT_US = 1_000_000
SECOND_US = 1_000_000
OUTCOMES = {"ACCEPT": "accepted", "RELEASE": "released", "REJECT": "rejected"}
# What a member did not end itself ends as its part in the incident has it.
PART = {"hung": "lock_expired", "doomed": "disconnected", "leaver": "session_closed"}

# Member, topic id, partition, offset, delivery count.
Record = tuple[str, str, int, int, int]


def delivered_outcomes(rows: Iterable[Delivery]) -> dict[Record, str]:
    """Every record of every delivery."""
    outcomes: dict[Record, str] = {}
    for row in rows:
        for offset in range(row.first_offset, row.last_offset + 1):
            key = (str(row.client_id), str(row.topic_id), row.partition, offset, row.delivery_count or 0)
            assert key not in outcomes, key
            outcomes[key] = row.outcome
    return outcomes


def logged_outcomes(name: str = "share") -> dict[Record, str]:
    events = truth(name)
    ids = {event["topic"]: event["topicId"] for event in events if event["event"] == "committed"}
    outcomes: dict[Record, str] = {}
    for event in events:
        if event["event"] == "acquired":
            for offset in range(event["firstOffset"], event["lastOffset"] + 1):
                place = (event["topicId"], event["partition"], offset, event["deliveryCount"])
                outcomes[(event["who"], *place)] = PART.get(event["who"], "open")
        elif event["event"] == "acknowledged" and event["type"] in OUTCOMES and not _refused(events, event):
            place = (ids[event["topic"]], event["partition"], event["offset"], event["deliveryCount"])
            outcomes[(event["who"], *place)] = OUTCOMES[event["type"]]
    return outcomes


def _refused(events: list[dict[str, Any]], acknowledged: dict[str, Any]) -> bool:
    """Its commit, the next of this record by this member, was answered with an error, or never came."""
    commits = (
        event["error"] is not None
        for event in events
        if event["event"] == "committed"
        and event["at"] >= acknowledged["at"]
        and all(event[name] == acknowledged[name] for name in ("who", "topic", "partition"))
        and acknowledged["offset"] in event["offsets"]
    )
    return next(commits, True)


def check_locks_expired_when_they_did(rows: Iterable[Delivery]) -> None:
    """The lock runs from the acquisition, which the client logged, for as long as the client was told."""
    expired = [row for row in rows if row.outcome == "lock_expired"]
    events = truth("share")
    lock_times = {event["lockMs"] for event in events if event["event"] == "delivered"}
    for row in expired:
        (acquired,) = (
            event["at"]
            for event in events
            if event["event"] == "acquired"
            and event["who"] == row.client_id
            and event["topicId"] == row.topic_id
            and event["partition"] == row.partition
            and event["deliveryCount"] == row.delivery_count
            and event["firstOffset"] <= row.first_offset
            and row.last_offset <= event["lastOffset"]
        )
        assert {row.lock_timeout_ms} == lock_times
        assert row.outcome_at is not None
        assert abs(row.outcome_at - acquired - (row.lock_timeout_ms or 0) * 1000) < SECOND_US
    assert expired


def held(tasks: Iterable[StreamsTask], who: str, at: int) -> dict[str, list[str]]:
    """What the member with this client id holds at a time, as the programs log it."""
    rows = [
        row
        for row in tasks
        if str(row.client_id).startswith(f"{who}-") and row.from_at <= at and (row.to_at is None or at < row.to_at)
    ]
    return {
        role: sorted(f"{row.subtopology_id}_{row.partition}" for row in rows if row.role == role)
        for role in ("active", "standby")
    }


def check_members_held_what_they_logged(tasks: list[StreamsTask]) -> None:
    """Within one heartbeat."""
    logged = [line for line in truth("streams") if line["event"] == "holds"]
    times = sorted({at for row in tasks for at in (row.from_at, row.to_at) if at is not None})
    assert len(logged) > 10
    for line in logged:
        near = [at for at in times if line["at"] - HEARTBEAT_US <= at <= line["at"]] + [line["at"]]
        states = [held(tasks, line["who"], at) for at in near]
        assert {"active": sorted(line["active"]), "standby": sorted(line["standby"])} in states, line


def check_settled_group_held_what_was_described(tasks: list[StreamsTask], lost: list[LostMember]) -> None:
    gone = {row.member_id: row.last_seen_at for row in lost}
    compared = 0
    for line in truth("streams"):
        if line["event"] != "group" or line["state"] != "Stable":
            continue
        if any(abs(row.from_at - line["at"]) < HEARTBEAT_US for row in tasks):
            continue  # granted, and about to be reported
        for member in line["members"]:
            if gone.get(member["memberId"], line["at"]) < line["at"]:
                continue  # the coordinator does not know yet
            held_tasks = held(tasks, member["clientId"].partition("-")[0], line["at"])
            assert held_tasks == {"active": sorted(member["active"]), "standby": sorted(member["standby"])}
            compared += 1
    assert compared >= 3


def check_halted_member_is_lost(lost: list[LostMember]) -> None:
    """And no other."""
    halted = next(line["at"] for line in truth("streams") if line["event"] == "halted" and line["who"] == "second")
    (row,) = lost
    assert str(row.client_id).startswith("second-")
    assert abs(row.last_seen_at - halted) < HEARTBEAT_US


def check_lag_is_what_was_described(replicas: list[QuorumReplica]) -> None:
    """As the programs' own DescribeQuorum was answered. The rows are those of one cluster, by time."""
    compared = 0
    for line in truth("quorum"):
        if line["event"] != "quorum":
            continue
        rows = [row for row in replicas if row.source == "describe" and row.observed_at <= line["at"]]
        last = [row for row in rows if row.observed_at == rows[-1].observed_at]
        assert {row.leader_id for row in last} == {line["leader"]}
        assert {row.leader_epoch for row in last} == {line["epoch"]}
        printed = {replica["id"]: replica["logEndOffset"] for replica in line["voters"] + line["observers"]}
        end = printed[line["leader"]]
        assert {row.replica_id: row.log_end_offset for row in last} == {
            node: offset if offset >= 0 else None for node, offset in printed.items()
        }
        assert {row.replica_id: row.lag for row in last} == {
            node: end - offset if offset >= 0 else None for node, offset in printed.items()
        }
        compared += 1
    assert compared > 5


def check_replication_is_what_the_tool_printed(replicas: list[QuorumReplica]) -> None:
    """Line by line; the time of the leader's own line tells which description it is. Where a replica has not fetched
    from this leader, the tool subtracts −1 and prints a lag that nobody has (protocol note 55)."""
    described: dict[str, dict[int, QuorumReplica]] = {}
    for row in replicas:
        if row.source == "describe":
            described.setdefault(str(row.exchange_id), {})[row.replica_id] = row
    by_time = {_ms(rows[next(iter(rows.values())).leader_id].last_fetch_at): rows for rows in described.values()}
    printed = 0
    for line in truth("quorum"):
        if line["event"] != "printed" or line["command"] != "--replication":
            continue
        table = [[cell.strip() for cell in row.split("\t")] for row in line["lines"][1:]]
        rows = by_time[next(int(cells[4]) for cells in table if cells[6] == "Leader")]
        assert set(rows) == {int(cells[0]) for cells in table}
        for node, directory, end, lag, fetched, caught_up, status in table:
            row = rows[int(node)]
            assert (row.directory_id, row.role) == (directory, status.lower())
            if end == "-1":
                assert (row.log_end_offset, row.lag, row.last_fetch_at) == (None, None, None)
                continue
            assert (row.log_end_offset, row.lag) == (int(end), int(lag))
            assert (_ms(row.last_fetch_at), _ms(row.last_caught_up_at)) == (int(fetched), int(caught_up))
        printed += 1
    assert printed >= 4


def _ms(at: int | None) -> int | None:
    return None if at is None else at // 1000


def check_leaders_are_those_elected(events: list[QuorumHappening], cause: str) -> None:
    """`cause` is that of the second election: what a recording knows of it depends on its kind."""
    lines = truth("quorum")
    leads = [line["node"] for line in lines if line["event"] == "leads"]
    killed = next(line["at"] for line in lines if line["event"] == "killed")
    epochs = {(line["leader"], line["epoch"]) for line in lines if line["event"] == "raft" and line.get("leader")}
    elected = [row for row in events if row.kind == "elected"]
    assert [row.node_id for row in elected] == leads
    assert {(row.node_id, row.epoch) for row in elected} <= epochs
    assert [row.cause for row in elected] == ["no_leader", cause]
    second = elected[1]
    assert second.previous_leader_id == leads[0] and second.duration_ms is not None
    assert abs(second.occurred_at - second.duration_ms * 1000 - killed) < 500_000
    assert [row.kind for row in events if row.node_id == leads[0] and row.occurred_at > second.occurred_at][:1] == [
        "late_resignation"
    ]
