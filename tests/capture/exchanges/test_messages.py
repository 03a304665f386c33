"""Bodies that wait to be decoded: they come out whole whatever makes them go, and hold no memory but their own."""

import tracemalloc
from collections import defaultdict
from collections.abc import Iterable
from io import BytesIO
from typing import Any

import pyarrow as pa
import pytest

from kafkascope.capture.exchanges import messages
from kafkascope.capture.exchanges.exchanges import ExchangeBatch
from kafkascope.capture.exchanges.messages import Messages, MessageTable
from kafkascope.capture.reader import Reading
from kafkascope.codec.frame import encode_frame
from tests.captures import capture
from tests.support.packet_build import Talk, pcap

Rows = dict[str, list[dict[str, Any]]]


def batches(*, large: int = 0) -> list[ExchangeBatch]:
    """Three heartbeats, and a Produce of so many bytes."""
    talk = Talk().open()
    for number in range(3):
        header = {"correlationId": number, "clientId": "app"}
        talk.say(0, encode_frame("HeartbeatRequest", 4, {"groupId": "g", "memberId": "m"}, header))
        talk.say(1, encode_frame("HeartbeatResponse", 4, {}, {"correlationId": number}))
    value = {"acks": -1, "topicData": [{"name": "t", "partitionData": [{"index": 0, "records": bytes(large)}]}]}
    talk.say(0, encode_frame("ProduceRequest", 9, value, {"correlationId": 3, "clientId": "app"}))
    talk.say(1, encode_frame("ProduceResponse", 9, {}, {"correlationId": 3}))
    return list(Reading(BytesIO(pcap(talk.packets))).batches())


def rows_of(tables: Iterable[MessageTable]) -> Rows:
    rows: Rows = defaultdict(list)
    for message in tables:
        for row in message.table.to_pylist():
            rows[f"{message.name} {row['api_version']}"].append(row)
    return rows


def decoded(recorded: bytes, **settings: Any) -> Rows:
    waiting = Messages(["exchange_id", "client_id"], **settings)
    tables = [table for batch in Reading(BytesIO(recorded)).batches() for table in waiting.add(batch)]
    return rows_of([*tables, *waiting.finish()])


@pytest.mark.parametrize("cap", ["ENOUGH_ROWS", "ENOUGH_BYTES", "_MOST_BYTES", "MOST_SHARED_BYTES"])
def test_whatever_makes_them_go_the_rows_are_the_same(cap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = capture("share")
    expected = decoded(recorded)
    assert sum(map(len, expected.values())) > 100
    monkeypatch.setattr("kafkascope.capture.files.packets.FIRST_BATCH_BYTES", 20_000)
    monkeypatch.setattr("kafkascope.capture.files.packets._GROWTH", 1)
    monkeypatch.setattr(messages, cap, 1_000)
    actual = decoded(recorded)
    assert {name: sorted(rows, key=lambda row: row["exchange_id"]) for name, rows in actual.items()} == {
        name: sorted(rows, key=lambda row: row["exchange_id"]) for name, rows in expected.items()
    }


def test_the_largest_goes_first_when_there_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "_MOST_BYTES", 50_000)
    waiting = Messages()
    (batch,) = batches(large=60_000)
    assert [table.name for table in waiting.add(batch)] == ["ProduceRequest"]
    assert {table.name for table in waiting.finish()} == {"HeartbeatRequest", "HeartbeatResponse", "ProduceResponse"}


def test_rare_bodies_that_wait_hold_no_memory_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats wait; a Produce of 200 kB beside them is decoded and dropped at once."""
    monkeypatch.setattr(messages, "ENOUGH_BYTES", 100_000)
    waiting = Messages()

    def add() -> None:
        assert [message.name for batch in batches(large=200_000) for message in waiting.add(batch)] == [
            "ProduceRequest"
        ]

    add()
    tracemalloc.start()
    try:
        for _ in range(20):
            add()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1_000_000
    rows = rows_of(waiting.finish())
    assert len(rows["HeartbeatRequest 4"]) == 3 * 21


def test_bodies_of_small_batches_that_wait_hold_no_memory_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The heartbeats that wait came beside a Produce of 40 kB that is gone."""
    monkeypatch.setattr(messages, "ENOUGH_BYTES", 30_000)
    (batch,) = batches(large=40_000)
    waiting = Messages()
    tracemalloc.start()
    try:
        for _ in range(100):
            assert [message.name for message in waiting.add(batch)] == ["ProduceRequest"]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 500_000
    assert len(rows_of(waiting.finish())["HeartbeatRequest 4"]) == 300


def test_keys_that_wait_hold_no_memory_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MOST_SHARED_BYTES", 1)
    (batch,) = batches()
    keys = pa.record_batch({"exchange_id": pa.array(["x" * 100_000] * len(batch))})
    waiting = Messages()
    assert list(waiting.add(batch, keys)) == []
    held = {name: group.keys().get_total_buffer_size() for (name, *_), group in waiting._groups.items()}
    assert {name: size // 100_000 for name, size in held.items()} == {
        "HeartbeatRequest": 3,
        "HeartbeatResponse": 3,
        "ProduceRequest": 1,
        "ProduceResponse": 1,
    }


@pytest.mark.parametrize("times", [1, 3])
def test_a_table_holds_no_keys_of_others(times: int) -> None:
    (batch,) = batches()
    keys = pa.record_batch({"exchange_id": pa.array(["x" * 100_000] * len(batch))})
    waiting = Messages()
    for _ in range(times):
        assert list(waiting.add(batch, keys)) == []
    held = {message.name: message.table.column("exchange_id").get_total_buffer_size() for message in waiting.finish()}
    assert {name: size // 100_000 for name, size in held.items()} == {
        "HeartbeatRequest": 3 * times,
        "HeartbeatResponse": 3 * times,
        "ProduceRequest": times,
        "ProduceResponse": times,
    }
