"""Memory that is used again and again, for one call after the other: no table sees what became of another."""

from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kafkascope.codec.message import encode
from kafkascope.columnar import buffers as buffers_module
from kafkascope.columnar import scratch as scratch_module
from kafkascope.columnar.decode import decode_columns
from kafkascope.errors import UsageError
from kafkascope.schema.layouts.layout import layout
from tests.columnar.expected import expected, without_nulls
from tests.columnar.test_engines_agree import left_over
from tests.support.hexes import hexes
from tests.support.values import random_value

MESSAGES = [("ShareFetchRequest", 2), ("MetadataResponse", 12), ("DescribeConfigsResponse", 4), ("FetchResponse", 16)]


def frames_of(name: str, version: int, first: int, count: int) -> pa.Array:
    known = layout(name, version)
    values = [random_value(known, first + case) for case in range(count)]
    return pa.array([encode(name, version, value) for value in values], type=pa.binary())


def rows(name: str, version: int, frames: pa.Array) -> list[Any]:
    values: list[Any] = decode_columns(name, version, frames).to_pylist()
    return values


def test_a_table_stays_as_it_is_when_others_are_made() -> None:
    calls = [(name, version, frames_of(name, version, 9 + case, 30)) for case in range(8) for name, version in MESSAGES]
    tables = [decode_columns(*each) for each in calls]
    for (name, version, frames), table in zip(calls, tables, strict=True):
        table.validate(full=True)
        for data, row in zip(frames.to_pylist(), table.to_pylist(), strict=True):
            assert without_nulls(row) == without_nulls(expected((name, version, None), data))


def test_threads_do_not_share_memory() -> None:
    calls = [
        (name, version, frames_of(name, version, 9 + case, 200)) for case in range(4) for name, version in MESSAGES
    ]
    alone = [rows(*each) for each in calls]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda each: rows(*each), calls * 4)) == alone * 4


def test_bad_frames_leave_no_mark_on_the_next_call() -> None:
    name, version = MESSAGES[0]
    frames = frames_of(name, version, 9, 20)
    expected = rows(name, version, frames)
    bad = decode_columns(name, version, pa.array([b"\xff"] * 20, type=pa.binary()))
    assert bad["_error"].null_count == 0
    assert rows(name, version, frames) == expected


def test_memory_that_has_become_large_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch_module, "_FREE", [])
    monkeypatch.setattr(scratch_module, "_KEPT_BYTES", 1_000_000)
    partitions = [{"partitionIndex": number} for number in range(60_000)]
    frame = encode("ListOffsetsResponse", 7, {"topics": [{"name": "t", "partitions": partitions}]})
    decode_columns("ListOffsetsResponse", 7, pa.array([frame[:0], frame[:900]], type=pa.binary()))
    assert len(scratch_module._FREE) == 1
    monkeypatch.setattr(buffers_module, "SMALL_BYTES", 4_000_000)
    decode_columns("ListOffsetsResponse", 7, pa.array([frame], type=pa.binary()))
    assert scratch_module._FREE == []


@pytest.mark.parametrize("before", [0, 1, 3_000])
def test_the_last_bytes_are_read_wherever_the_frame_began(before: int) -> None:
    """Frames of every length around that from which on the end alone is copied."""
    known = ("OffsetCommitRequest", 9, None)
    for length in range(600, 1_400, 7):
        topics = [{"name": "t" * 60, "partitions": [{"partitionIndex": 1}] * 3} for _ in range(length // 120)]
        value = {"groupId": "g" * (length % 120), "memberId": "é" * 40, "topics": topics}
        data = encode(known[0], known[1], value)
        table = decode_columns(known[0], known[1], pa.array([data] * (before // len(data) + 1), type=pa.binary()))
        for row in table.to_pylist():
            assert without_nulls(row) == without_nulls(expected(known, data)), length


def test_wide_offsets_that_turn_over_are_refused() -> None:
    most = 2**63 - 1
    for ends in ([0, most, 5], [0, -most, 5], [0, 9, 3]):
        offsets = pa.py_buffer(np.array(ends, dtype=np.int64))
        frames = pa.Array.from_buffers(pa.large_binary(), 2, [None, offsets, pa.py_buffer(bytes(12))])
        with pytest.raises(UsageError, match="offsets"):
            decode_columns("ListGroupsRequest", 3, frames)


def test_portions_of_wide_offsets_begin_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    from kafkascope.columnar import decode as decode_module

    name, version = MESSAGES[0]
    frames = frames_of(name, version, 9, 60)
    expected = rows(name, version, frames)
    monkeypatch.setattr(decode_module, "_PORTION_BYTES", 300)
    assert rows(name, version, frames.cast(pa.large_binary())) == expected
    assert rows(name, version, frames.cast(pa.large_binary()).slice(17)) == expected[17:]


def test_what_java_reads_without_a_word_stays_in_the_kernel() -> None:
    plain = "04 616161 02 31 00"  # names "aaa" and "1", no tags
    odd = [
        "8400 616161 02 31 00",  # a length of two bytes where one would do
        "04 616161 02 31 00 ffff",  # two bytes after the message
        "04 616161 02 31 01 8700 00",  # tag 7 in two bytes
    ]
    frames = [hexes(each) for each in (plain, *odd)]
    bools = [bytes([1, first, second, 0]) for first in (0, 1, 2, 255) for second in (128, 7, 0)]
    for place, data_list in ((("ApiVersionsRequest", 3, None), frames), (("MetadataRequest", 12, None), bools)):
        assert left_over(place, data_list) == []
        table = decode_columns(place[0], place[1], pa.array(data_list, type=pa.binary()))
        for data, row in zip(data_list, table.to_pylist(), strict=True):
            assert without_nulls(row) == without_nulls(expected(place, data))


def test_packed_bits_are_those_of_every_row() -> None:
    """Bools and nulls of any number of rows, in bytes that are not full."""
    random = Random(3)
    for count in (1, 7, 8, 9, 64, 65, 1_000):
        values: list[dict[str, Any]] = [
            {"topics": random.choice((None, [])), "allowAutoTopicCreation": random.random() < 0.5} for _ in range(count)
        ]
        frames = pa.array([encode("MetadataRequest", 12, value) for value in values], type=pa.binary())
        table = decode_columns("MetadataRequest", 12, frames)
        table.validate(full=True)
        values_read = [(row["topics"], row["allow_auto_topic_creation"]) for row in table.to_pylist()]
        assert values_read == [(value["topics"], value["allowAutoTopicCreation"]) for value in values]
