"""The columns of exchanges against the rows that they are made of, one by one in plain Python."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from io import BytesIO
from typing import Any

import numpy as np
import pytest

from kafkascope.capture.base.flow import (
    FrameKind,
)
from kafkascope.capture.exchanges.bodies import read_frame
from kafkascope.capture.exchanges.exchange import inner_frames
from kafkascope.capture.exchanges.exchange_columns import LONG_POLLS, SCHEMA, TOKEN_API, to_arrow
from kafkascope.capture.exchanges.exchanges import ExchangeBatch
from kafkascope.capture.exchanges.facts import ENVELOPE, ids_of
from kafkascope.capture.exchanges.identity import connection_name, exchange_ids
from kafkascope.capture.exchanges.pairing import STATUSES
from kafkascope.capture.frames.headers import (
    Frame,
)
from kafkascope.capture.frames.scan_program import (
    Fact,
)
from kafkascope.capture.reader import Reading
from kafkascope.codec.frame import DecodedFrame, encode_frame
from kafkascope.errors import DecodeError
from kafkascope.schema.catalog import apis
from kafkascope.schema.errors.error_codes import error_name
from tests.captures import NAMES, capture
from tests.support.packet_build import Stamped, Talk, pcap, pcapng


def expected_row(batch: ExchangeBatch, index: int) -> dict[str, Any]:
    """Times as whole microseconds; without the exchange's id."""
    request, response = int(batch.request[index]), int(batch.response[index])
    row = batch.rows[request if request >= 0 else response].tolist()
    answer = batch.rows[response].tolist() if response >= 0 else None
    values, seen = batch.facts.values[index].tolist(), batch.facts.seen[index].tolist()
    end = batch.ends[row[Frame.CONNECTION]]
    has_request, token = request >= 0, row[Frame.KIND] == FrameKind.TOKEN
    framed = has_request and not token
    api = TOKEN_API if has_request and token else apis().get(row[Frame.API_KEY]) if framed else None
    later = has_request and answer is not None and answer[Frame.FIRST_NS] >= row[Frame.LAST_NS]
    waits = has_request and api in LONG_POLLS and not (seen[Fact.MAX_WAIT] and values[Fact.MAX_WAIT] <= 0)
    named = has_request and row[Frame.CLIENT_AT] >= 0
    client = batch.content.bytes(row[Frame.FRAME_AT] + row[Frame.CLIENT_AT], row[Frame.CLIENT_SIZE]) if named else None
    error = values[Fact.ERROR] if answer and seen[Fact.ERROR] else None
    file = max(at for at, first in enumerate(batch.recordings.first_packets) if first <= row[Frame.PACKET])
    return {
        "connection_id": connection_name(end.number),
        "capture_uri": batch.recordings.uris[file],
        "packet": row[Frame.PACKET] - batch.recordings.first_packets[file],
        "request_at": row[Frame.LAST_NS] // 1000 if has_request else None,
        "response_at": answer[Frame.FIRST_NS] // 1000 if answer else None,
        "latency_us": answer[Frame.FIRST_NS] // 1000 - row[Frame.LAST_NS] // 1000 if later and answer else None,
        "long_poll": waits,
        "max_wait_ms": values[Fact.MAX_WAIT] if waits and seen[Fact.MAX_WAIT] else None,
        "api_key": row[Frame.API_KEY] if framed else None,
        "api": api,
        "api_version": row[Frame.VERSION] if framed else None,
        "correlation_id": None if token else row[Frame.CORRELATION],
        "client_id": client.decode(errors="replace") if client is not None else None,
        "client_address": end.client_address,
        "broker_address": end.broker_address,
        "client_software": end.software if row[Frame.OFFSET] >= end.software_from else None,
        "request_bytes": row[Frame.SIZE] + row[Frame.MISSING] + 4 if has_request else None,
        "response_bytes": answer[Frame.SIZE] + answer[Frame.MISSING] + 4 if answer else None,
        "error_code": error,
        "error": error_name(error) if error else None,
        "throttle_ms": values[Fact.THROTTLE] if seen[Fact.THROTTLE] else None,
        "status": STATUSES[batch.status[index]],
        **named_in(batch, index),
    }


def _ids(frame: DecodedFrame) -> dict[int, str | None]:
    return ids_of(frame.body) if frame.body else {}


def named_in(batch: ExchangeBatch, index: int) -> dict[str, str | None]:
    """The group and member as the codec finds them."""
    ids: dict[int, str | None] = {}
    frames = batch.request_frame(index), batch.response_frame(index)
    if frames[0] is not None and batch.rows[batch.request[index], Frame.KIND] != FrameKind.TOKEN:
        key, version = (int(batch.rows[batch.request[index], column]) for column in (Frame.API_KEY, Frame.VERSION))
        with suppress(DecodeError):
            ids = _ids(read_frame(frames[0], None))
            if frames[1] is not None:
                ids = _ids(read_frame(frames[1], (key, version))) | ids
            if key == ENVELOPE:
                for frame, _ in inner_frames(*frames):
                    ids = _ids(frame) | ids
    return {"group_id": ids.get(Fact.GROUP_AT), "member_id": ids.get(Fact.MEMBER_AT)}


def check(batch: ExchangeBatch) -> None:
    columns = to_arrow(batch)
    columns.validate(full=True)
    assert columns.schema == SCHEMA
    for name in ("request_at", "response_at"):
        at = columns.schema.get_field_index(name)
        columns = columns.set_column(at, name, columns.column(name).view("int64"))
    numbers = np.array([batch.ends[number].number for number in batch.rows[batch.row(), Frame.CONNECTION]], np.uint64)
    ids = exchange_ids(numbers, batch.rows[batch.row(), Frame.OFFSET], (batch.request < 0).astype(np.int64))
    assert columns.column("exchange_id").equals(ids)
    actual = columns.drop_columns(["exchange_id"]).to_pylist()
    assert actual == [expected_row(batch, index) for index in range(len(batch))]


@pytest.mark.parametrize("name", NAMES)
def test_every_exchange_of_the_recorded_captures(name: str) -> None:
    recorded = capture(name)
    for batch in Reading(BytesIO(recorded)).batches():
        check(batch)
    # Some packets are lost: answers alone, requests without one.
    seen: set[int] = set()
    kept = [packet for at, packet in enumerate(packets(recorded)) if at % 9]
    for batch in Reading(BytesIO(recorded[:24] + b"".join(kept))).batches():
        check(batch)
        seen.update(batch.status.tolist())
    assert len(seen) >= 3


def packets(recorded: bytes) -> Iterator[bytes]:
    at = 24
    while at < len(recorded):
        end = at + 16 + int.from_bytes(recorded[at + 8 : at + 12], "little")
        yield recorded[at:end]
        at = end


@pytest.mark.parametrize("write", [lambda packets: pcap(packets, nano=True), pcapng], ids=["pcap", "pcapng"])
def test_latency_of_a_nanosecond_capture_is_between_the_times_that_are_shown(
    write: Callable[[list[Stamped]], bytes],
) -> None:
    """1,400 ns are 2 µs between the times as they are written, or 1; a response before its request has none."""
    ends = [(0, 1_400), (999, 2_399), (999, 1_000), (1, 999), (500, 400)]
    latencies = []
    for asked_ns, answered_ns in ends:
        talk = heartbeat("app", 0)
        (before, request), (_, response) = talk.packets[3:]
        talk.packets[3:] = [(before + asked_ns, request), (before + answered_ns, response)]
        (batch,) = Reading(BytesIO(write(talk.packets))).batches()
        (row,) = to_arrow(batch).to_pylist()
        latencies.append(row["latency_us"])
        if row["latency_us"] is not None:
            assert row["response_at"] - row["request_at"] == timedelta(microseconds=row["latency_us"])
    assert latencies == [1, 2, 1, 0, None]


def heartbeat(client_id: str, error: int) -> Talk:
    header = {"correlationId": 1, "clientId": client_id}
    talk = Talk().open()
    talk.say(0, encode_frame("HeartbeatRequest", 4, {"groupId": "g", "memberId": "m"}, header))
    return talk.say(1, encode_frame("HeartbeatResponse", 4, {"errorCode": error}, {"correlationId": 1}))


@pytest.mark.parametrize("error", [-32_768, -1, 0, 1, 9_999, 32_767])
def test_any_error_code_there_can_be(error: int) -> None:
    (batch,) = Reading(BytesIO(pcap(heartbeat("app", error).packets))).batches()
    check(batch)
    assert to_arrow(batch).column("error").to_pylist() == [error_name(error) if error else None]


def test_client_ids_that_are_no_text_are_shown_with_replacement_characters() -> None:
    recorded = pcap(heartbeat("café1", 0).packets)
    for last, shown in ((b"2", "2"), (b"\xff", "\N{REPLACEMENT CHARACTER}")):
        changed = recorded.replace("café1".encode(), "café".encode() + last)
        for batch in Reading(BytesIO(changed), kafka_ports=[9_092]).batches():
            check(batch)
            assert to_arrow(batch).column("client_id").to_pylist() == [f"café{shown}"]
