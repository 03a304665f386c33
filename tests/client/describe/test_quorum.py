"""DescribeQuorum answers of a recorded incident become views that say what is known, and no more."""

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest

from kafkascope.client.describe.quorum import QuorumView, quorum_of, rows_of
from tests.client.describe.recorded import CAPTURES, answers


def described(leader: int, epoch: int) -> list[Mapping[str, Any]]:
    responses = [value for value in answers("quorum", leader, "DescribeQuorum") if value["topics"]]
    parts = [(value, value["topics"][0]["partitions"][0]) for value in responses]
    return [value for value, part in parts if part["errorCode"] == 0 and part["leaderEpoch"] == epoch]


def view(value: Mapping[str, Any], **more: Any) -> QuorumView:
    return quorum_of(value, at_us=1_794_744_416_000_000, **more)


def frozen() -> Mapping[str, Any]:
    """Node 1 stands still at 37 while the leader, node 2, goes on."""
    responses = [value for value in described(2, 1) if _ends(value)[1] == 37 and _ends(value)[2] == 49]
    return responses[-1]


def _ends(value: Mapping[str, Any]) -> dict[int, int]:
    voters = value["topics"][0]["partitions"][0]["currentVoters"]
    return {voter["replicaId"]: voter["logEndOffset"] for voter in voters}


def test_healthy_quorum_has_a_leader_followers_and_an_observer_in_time() -> None:
    seen = view(described(2, 1)[0], cluster_id="abc")
    assert (seen.controller_id, seen.leader_epoch, seen.high_watermark) == (2, 1, 30)
    assert [(voter.node_id, voter.role, voter.lag, voter.behind) for voter in seen.voters] == [
        (2, "leader", 0, None),
        (1, "follower", 0, None),
        (3, "follower", 0, None),
    ]
    assert [(observer.node_id, observer.role, observer.lag) for observer in seen.observers] == [(4, "observer", 0)]
    assert (seen.max_follower_lag, seen.max_follower_lag_ms, seen.troubles) == (0, 0, ())
    assert all(voter.endpoints and voter.directory_id for voter in seen.voters)


def test_frozen_follower_falls_behind_by_time_against_the_fetch_timeout() -> None:
    seen = view(frozen())
    late = next(voter for voter in seen.voters if voter.node_id == 1)
    assert (late.lag, late.log_end_offset) == (12, 37)
    assert not seen.fetch_timeout_known
    assert late.fetch_age_ms is not None and late.fetch_age_ms >= seen.fetch_timeout_ms == 2000
    assert late.behind is not None and late.behind.startswith("Voter node `1` didn't fetch")
    assert [trouble.rule for trouble in seen.troubles] == ["quorum_follower_behind"]


def test_lag_in_records_alone_is_not_behind() -> None:
    seen = view(frozen(), timeouts={"controller.quorum.fetch.timeout.ms": 3_600_000})
    assert seen.fetch_timeout_known and seen.max_follower_lag == 12
    assert [voter.behind for voter in seen.voters] == [None, None, None]


def test_replica_that_has_not_fetched_from_this_leader_has_unknown_lag() -> None:
    value = next(value for value in described(3, 2) if _ends(value)[2] == -1)
    seen = view(value)
    dead = next(voter for voter in seen.voters if voter.node_id == 2)
    assert (dead.log_end_offset, dead.lag, dead.lag_ms, dead.fetch_age_ms) == (None, None, None, None)
    assert dead.behind is not None and "unknown" in dead.behind
    # the furthest behind may be the one of which nothing is known
    assert (seen.max_follower_lag, seen.max_follower_lag_ms) == (None, None)


def test_new_leader_does_not_know_its_high_watermark() -> None:
    value = next(value for value in described(3, 2) if value["topics"][0]["partitions"][0]["highWatermark"] == -1)
    assert view(value).high_watermark is None


def test_answer_of_a_node_that_does_not_lead_is_no_observation() -> None:
    refused = next(
        value
        for value in answers("quorum", 1, "DescribeQuorum")
        if value["topics"] and value["topics"][0]["partitions"][0]["errorCode"]
    )
    assert rows_of(refused, 0) == []
    former = deepcopy(dict(described(2, 1)[0]))
    former["topics"][0]["partitions"][0]["errorCode"] = 6
    assert rows_of(former, 0) == []


def test_answers_without_timestamps_have_unknown_times() -> None:
    """Version 0, before 3.3, has neither timestamps nor directory ids nor nodes."""
    value = deepcopy(dict(described(2, 1)[0]))
    del value["nodes"]
    part = value["topics"][0]["partitions"][0]
    for replica in (*part["currentVoters"], *part["observers"]):
        for name in ("lastFetchTimestamp", "lastCaughtUpTimestamp", "replicaDirectoryId"):
            del replica[name]
    follower = next(voter for voter in view(value).voters if voter.role == "follower")
    assert (follower.fetch_age_ms, follower.directory_id, follower.endpoints) == (None, None, ())
    assert (follower.lag, follower.lag_ms) == (0, 0)


def printed() -> list[list[str]]:
    """What MetadataQuorumCommand printed during the recording: --replication."""
    events = [json.loads(line) for line in (CAPTURES / "quorum" / "truth.jsonl").read_text().splitlines()]
    return [
        event["lines"]
        for event in events
        if event["event"] == "printed" and event["command"] == "--replication" and event["status"] == 0
    ]


def rows_of_tool(lines: list[str]) -> dict[int, tuple[str, ...]]:
    rows = [tuple(cell.strip() for cell in line.split("\t")) for line in lines[1:]]
    return {int(row[0]): row for row in rows}


@pytest.mark.parametrize("lines", printed(), ids=lambda lines: lines[1].split()[2])
def test_agrees_with_kafkas_tool_on_the_recorded_incident(lines: list[str]) -> None:
    """The same answer by its leader's last fetch, which no two answers share; −1 stands for unknown."""
    expected = rows_of_tool(lines)
    stamps = {row[4] for row in expected.values() if row[6] == "Leader"}
    views = [view(value) for leader, epoch in ((2, 1), (3, 2)) for value in described(leader, epoch)]
    seen = next(candidate for candidate in views if str(candidate.voters[0].last_fetch_timestamp) in stamps)
    for replica in (*seen.voters, *seen.observers):
        row = expected.pop(replica.node_id)
        assert row[1] == replica.directory_id
        assert row[2] == str(-1 if replica.log_end_offset is None else replica.log_end_offset)
        # on purpose: the tool subtracts −1 from the leader's end
        assert replica.lag is None if row[2] == "-1" else row[3] == str(replica.lag)
        assert row[4] == str(-1 if replica.last_fetch_timestamp is None else replica.last_fetch_timestamp)
        assert row[5] == str(-1 if replica.last_caught_up_timestamp is None else replica.last_caught_up_timestamp)
        assert row[6].lower() == replica.role
    assert not expected
