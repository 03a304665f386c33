"""The recorded streams incident: what its Java programs logged is what the timeline says."""

import lzma
import struct
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from kafkascope.health.streams.events import StreamsEvent
from kafkascope.health.streams.group_health import health_of
from kafkascope.health.streams.rows import StreamsTimeline
from kafkascope.health.streams.timeline import timeline_of
from tests.support.incidents import (
    check_halted_member_is_lost,
    check_members_held_what_they_logged,
    check_settled_group_held_what_was_described,
)

pytest.importorskip("pyarrow")
pytest.importorskip("numba")

RECORDING = Path(__file__).parents[1] / "captures" / "streams"
FIN_OR_RST = 0x05


def closings(path: Path) -> Iterator[tuple[int, str]]:
    """When an end of a connection was closed, and the addresses on both sides in either order."""
    data = lzma.decompress(path.read_bytes())
    magic, link = struct.unpack_from("<I16xI", data)
    assert magic in (0xA1B2C3D4, 0xA1B23C4D) and link == 1
    unit, at = (1000 if magic == 0xA1B23C4D else 1), 24
    while at < len(data):
        seconds, part, size = struct.unpack_from("<III", data, at)
        packet = data[at + 16 : at + 16 + size]
        at += 16 + size
        if packet[12:14] == b"\x08\x00" and packet[23] == 6:
            start = 14 + (packet[14] & 15) * 4
            source, target = struct.unpack_from(">HH", packet, start)
            if packet[start + 13] & FIN_OR_RST:
                yield seconds * 1_000_000 + part // unit, f"127.0.0.1:{source} 127.0.0.1:{target}"
                yield seconds * 1_000_000 + part // unit, f"127.0.0.1:{target} 127.0.0.1:{source}"


def text(tasks: list[dict[str, Any]] | None) -> str | None:
    if tasks is None:
        return None
    return ",".join(f"{task['subtopologyId']}_{partition}" for task in tasks for partition in task["partitions"])


def microseconds(time: datetime | None) -> int:
    assert time is not None
    return round(time.timestamp() * 1_000_000)


def described(group: dict[str, Any], at: int, exchange_id: str) -> Iterator[StreamsEvent]:
    for member in group["members"]:
        held, target = member["assignment"], member["targetAssignment"]
        yield StreamsEvent(
            "described_member", at, 1, group["groupId"], exchange_id, None, member["memberId"], member["clientId"],
            member["processId"], member["memberEpoch"], text(held["activeTasks"]), text(held["standbyTasks"]),
            text(held["warmupTasks"]), text(target["activeTasks"]), text(target["standbyTasks"]),
            text(target["warmupTasks"]),
        )  # fmt: skip
    subtopologies = group["topology"]["subtopologies"]
    counts = {
        part["subtopologyId"]: max(
            topic["partitions"] for topic in part["stateChangelogTopics"] + part["repartitionSourceTopics"]
        )
        for part in subtopologies
    }
    yield StreamsEvent(
        "described", at, 2, group["groupId"], exchange_id,
        group_state=group["groupState"], group_epoch=group["groupEpoch"], assignment_epoch=group["assignmentEpoch"],
        topology_epoch=group["topology"]["epoch"], topology=",".join(f"{k}={v}" for k, v in counts.items()),
        stateful=",".join(part["subtopologyId"] for part in subtopologies if part["stateChangelogTopics"]),
    )  # fmt: skip


def recorded_events() -> Iterator[StreamsEvent]:
    from kafkascope.capture.reader import read

    connections: dict[str, str] = {}
    for exchange in read([str(RECORDING / "capture.pcap.xz")]):
        if exchange.api not in ("StreamsGroupHeartbeat", "StreamsGroupDescribe") or exchange.request is None:
            continue
        request, answer = exchange.request.value, exchange.response.value if exchange.response else None
        response_at = microseconds(exchange.response_at) if answer else 0
        if exchange.api == "StreamsGroupDescribe":
            for group in answer["groups"] if answer else ():
                yield from described(group, response_at, exchange.exchange_id)
            continue
        connections[f"{exchange.client_address} {exchange.broker_address}"] = exchange.connection_id
        topology = request["topology"]
        yield StreamsEvent(
            "heartbeat", microseconds(exchange.request_at), 0, request["groupId"], exchange.exchange_id,
            exchange.connection_id, request["memberId"], exchange.client_id, request["processId"],
            request["memberEpoch"],
            text(request["activeTasks"]), text(request["standbyTasks"]), text(request["warmupTasks"]),
            topology_epoch=topology and topology["epoch"],
        )  # fmt: skip
        if answer:
            status = answer["status"]
            yield StreamsEvent(
                "answer", response_at, 0, request["groupId"], exchange.exchange_id, exchange.connection_id,
                request["memberId"], exchange.client_id, None, answer["memberEpoch"], text(answer["activeTasks"]),
                text(answer["standbyTasks"]), text(answer["warmupTasks"]), error_code=answer["errorCode"],
                status=None if status is None else "\n".join(f"{s['statusCode']} {s['statusDetail']}" for s in status),
                heartbeat_interval_ms=answer["heartbeatIntervalMs"],
            )  # fmt: skip
    for at, ends in closings(RECORDING / "capture.pcap.xz"):
        if ends in connections:
            yield StreamsEvent("disconnected", at, 0, "counters", connection_id=connections[ends])


@pytest.fixture(scope="module")
def timeline() -> StreamsTimeline:
    made = timeline_of(sorted(recorded_events(), key=lambda event: (event.at_us, event.order)))
    assert made is not None
    return made


def test_members_held_what_they_logged_within_one_heartbeat(timeline: StreamsTimeline) -> None:
    check_members_held_what_they_logged(timeline.tasks)


def test_a_settled_group_held_what_the_coordinator_described(timeline: StreamsTimeline) -> None:
    check_settled_group_held_what_was_described(timeline.tasks, timeline.lost)


def test_the_halted_member_is_lost_and_the_others_leave(timeline: StreamsTimeline) -> None:
    check_halted_member_is_lost(timeline.lost)
    lost = {row.member_id for row in timeline.lost}
    assert {row.ended_by for row in timeline.members if row.member_id not in lost} == {"left"}


def test_moves_and_the_missing_topics_are_told(timeline: StreamsTimeline) -> None:
    assert {move.cause for move in timeline.moves} == {"revoked", "lost", "left"}
    assert all(move.warm for move in timeline.moves if move.cause == "left")
    assert timeline.statuses[0].name == "MISSING_INTERNAL_TOPICS" and timeline.statuses[0].to_at is not None
    rows = list(health_of(timeline))
    assert sum(row.moves for row in rows) == len(timeline.moves)
    assert sum(row.lost for row in rows) == 1
    assert rows[-1].members == 0 and rows[-1].active_tasks == 0
