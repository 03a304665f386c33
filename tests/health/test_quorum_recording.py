"""The recorded quorum incident: leaders, elections and lag are what Kafka's own tool printed meanwhile."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkascope.codec.json_form import uuid_text
from kafkascope.health.quorum.elections import Elections
from kafkascope.health.quorum.events import QuorumEvent
from kafkascope.health.quorum.history import history_of
from kafkascope.health.quorum.replicas import Replicas
from kafkascope.health.quorum.rows import QuorumReplica
from tests.captures import truth
from tests.health.test_streams_recording import closings, microseconds
from tests.support.incidents import (
    check_lag_is_what_was_described,
    check_leaders_are_those_elected,
    check_replication_is_what_the_tool_printed,
)

pytest.importorskip("pyarrow")
pytest.importorskip("numba")

RECORDING = Path(__file__).parents[1] / "captures" / "quorum"
METADATA_LOG = 1  # the id of __cluster_metadata


def fetches(exchange: Any, request: dict[str, Any], answer: dict[str, Any] | None) -> Iterator[QuorumEvent]:
    if not request["topics"] or request["topics"][0]["topicId"].int != METADATA_LOG:
        return
    partition = request["topics"][0]["partitions"][0]
    where = (exchange.exchange_id, exchange.connection_id, exchange.broker_address)
    who = (request["replicaState"]["replicaId"], uuid_text(partition["replicaDirectoryId"]))
    yield QuorumEvent(
        "fetch", microseconds(exchange.request_at), 0, *where, *who, leader_epoch=partition["currentLeaderEpoch"],
        offset=partition["fetchOffset"], max_wait_ms=request["maxWaitMs"],
    )  # fmt: skip
    if answer and answer["responses"]:
        part = answer["responses"][0]["partitions"][0]
        yield QuorumEvent(
            "fetch_answer", microseconds(exchange.response_at), 0, *where, *who,
            leader_id=part["currentLeader"]["leaderId"], leader_epoch=part["currentLeader"]["leaderEpoch"],
            offset=partition["fetchOffset"], high_watermark=part["highWatermark"],
            records_bytes=len(part["records"] or b""), error_code=answer["errorCode"] or part["errorCode"],
            how="diverging" if part["divergingEpoch"]["epoch"] >= 0 else None,
        )  # fmt: skip


def raft(exchange: Any, request: dict[str, Any], answer: dict[str, Any] | None) -> Iterator[QuorumEvent]:
    kind = {"Vote": "vote", "BeginQuorumEpoch": "begin", "EndQuorumEpoch": "end"}[exchange.api]
    partition = request["topics"][0]["partitions"][0]
    where = (exchange.exchange_id, exchange.connection_id, exchange.broker_address)
    event = QuorumEvent(
        kind, microseconds(exchange.request_at), 0, *where, partition.get("replicaId"), None, request.get("voterId"),
        partition.get("leaderId"), partition.get("leaderEpoch"), partition.get("replicaEpoch"),
        partition.get("lastOffset"),
        pre_vote=partition.get("preVote"),
    )  # fmt: skip
    yield event
    if answer and answer["topics"]:
        part = answer["topics"][0]["partitions"][0]
        yield event._replace(
            kind=f"{kind}_answer", at_us=microseconds(exchange.response_at), leader_id=part["leaderId"],
            leader_epoch=part["leaderEpoch"], granted=part.get("voteGranted"),
            error_code=answer["errorCode"] or part["errorCode"],
        )  # fmt: skip


def descriptions(exchange: Any, answer: dict[str, Any]) -> Iterator[QuorumEvent]:
    part = answer["topics"][0]["partitions"][0]
    for voter, name in ((True, "currentVoters"), (False, "observers")):
        for replica in part[name]:
            yield QuorumEvent(
                "described", microseconds(exchange.response_at), 0, exchange.exchange_id, exchange.connection_id, None,
                replica["replicaId"], uuid_text(replica["replicaDirectoryId"]), None, part["leaderId"],
                part["leaderEpoch"], None, replica["logEndOffset"], part["highWatermark"],
                last_fetch_ms=replica["lastFetchTimestamp"],
                last_caught_up_ms=replica["lastCaughtUpTimestamp"], voter=voter,
                error_code=answer["errorCode"] or part["errorCode"],
            )  # fmt: skip


def recorded_events() -> Iterator[QuorumEvent]:
    from kafkascope.capture.reader import read

    connections: dict[str, str] = {}
    for exchange in read([str(RECORDING / "capture.pcap.xz")]):
        if exchange.request is None:
            continue
        request, answer = exchange.request.value, exchange.response.value if exchange.response else None
        if exchange.api == "Fetch":
            connections[f"{exchange.client_address} {exchange.broker_address}"] = exchange.connection_id
            yield from fetches(exchange, request, answer)
        elif exchange.api in ("Vote", "BeginQuorumEpoch", "EndQuorumEpoch"):
            yield from raft(exchange, request, answer)
        elif exchange.api == "DescribeQuorum" and answer and answer["topics"]:
            yield from descriptions(exchange, answer)
        elif exchange.api == "Envelope":
            # A broker passes the question on to the leader.
            for inner_frame in exchange.inner():
                if (
                    inner_frame.name == "DescribeQuorumResponse"
                    and inner_frame.body is not None
                    and inner_frame.body.value["topics"]
                ):
                    yield from descriptions(exchange, inner_frame.body.value)
    for at, ends in closings(RECORDING / "capture.pcap.xz"):
        if ends in connections:
            yield QuorumEvent("disconnected", at, 0, connection_id=connections[ends], how="fin")


@pytest.fixture(scope="module")
def events() -> list[QuorumEvent]:
    return sorted(recorded_events(), key=lambda event: (event.at_us, event.order))


def descriptions_seen(events: list[QuorumEvent]) -> list[tuple[list[QuorumReplica], list[QuorumReplica]]]:
    """Each description with what the fetches alone told just before it."""
    elections = Elections()
    fetched = Replicas(elections)
    by_cluster: dict[str | None, list[QuorumReplica]] = {}
    for event in events:
        if event.kind == "described":
            by_cluster.setdefault(event.exchange_id, fetched.now(event.at_us, event.exchange_id))
        else:
            elections.feed(event)
            fetched.feed(event)
    rows = [row for row in history_of(events).replicas if row.source == "describe"]
    return [([row for row in rows if row.exchange_id == key], at_time) for key, at_time in by_cluster.items()]


def test_lag_of_descriptions_is_what_the_tool_printed(events: list[QuorumEvent]) -> None:
    replicas = history_of(events).replicas
    check_lag_is_what_was_described(replicas)
    check_replication_is_what_the_tool_printed(replicas)


def test_fetches_alone_tell_the_lag_that_the_leader_described(events: list[QuorumEvent]) -> None:
    """A description is made a few milliseconds before its answer is seen: what was fetched since may differ by that."""
    same = different = 0
    for described, fetched in descriptions_seen(events):
        by_id = {row.replica_id: row for row in fetched}
        for row in described:
            if row.replica_id in by_id and row.lag is not None:
                other = by_id[row.replica_id]
                if (other.log_end_offset, other.lag) == (row.log_end_offset, row.lag):
                    same += 1
                else:
                    different += 1
                assert other.role == row.role or other.role is None
    assert same > 20 and different <= same // 10


def test_leaders_by_epoch_and_the_cause_of_each_election(events: list[QuorumEvent]) -> None:
    check_leaders_are_those_elected(history_of(events).events, "lost")


def test_a_thawed_follower_asked_for_votes_and_got_none(events: list[QuorumEvent]) -> None:
    frozen = next(line for line in truth("quorum") if line["event"] == "frozen")
    thawed = next(line["at"] for line in truth("quorum") if line["event"] == "thawed")
    killed = next(line["at"] for line in truth("quorum") if line["event"] == "killed")
    votes = [row for row in history_of(events).events if thawed < row.occurred_at < killed and row.kind == "pre_vote"]
    assert votes and {(row.node_id, row.granted) for row in votes} == {(frozen["node"], False)}


def test_samples_of_fetches_come_at_most_once_a_second(events: list[QuorumEvent]) -> None:
    rows = [row for row in history_of(events).replicas if row.source == "fetch"]
    seconds = [(row.replica_id, row.observed_at // 1_000_000) for row in rows]
    assert len(seconds) == len(set(seconds)) > 20
