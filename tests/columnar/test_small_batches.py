"""Few frames of many messages together: the same tables as each message has alone, or none where that is unsure."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pytest

from kafkascope.codec.message import encode
from kafkascope.columnar import scratch as scratch_module
from kafkascope.columnar import small_batches as few_module
from kafkascope.columnar.decode import decode_columns
from kafkascope.columnar.small_batches import Few, Made, decode_few
from kafkascope.schema.catalog import index, message
from kafkascope.schema.layouts.layout import layout
from tests.support.values import random_value

Given = Sequence[tuple[str | None, int, list[bytes]]]
UNKNOWN_TAG = bytes.fromhex("01630107")  # one tag, 99, of one byte


def every_message(count: int) -> Given:
    places = [(name, version) for name in index() for version in sorted(message(name).all_versions())]
    return [
        (name, version, [encode(name, version, random_value(layout(name, version), case)) for case in range(count)])
        for name, version in places
    ]


def few_of(messages: Given) -> Few:
    """All of them in one piece of memory."""
    frames = [frame for _, _, some in messages for frame in some]
    content = np.frombuffer(b"".join(frames) or b"\0", np.uint8)
    ends = np.cumsum([0, *map(len, frames)]).astype(np.int32)
    starts = [0, *accumulate(len(some) for _, _, some in messages)]
    return Few([(name, version) for name, version, _ in messages], starts, content, ends)


def decoded(messages: Given) -> list[Made]:
    return list(decode_few(few_of(messages)))


def alone(messages: Given) -> pa.Table:
    """Of one message, version by version."""
    tables = []
    for name, version, frames in messages:
        assert name is not None
        table = decode_columns(name, version, pa.array(frames, type=pa.binary()))
        tables.append(table.add_column(0, "api_version", pa.array([version] * len(frames), pa.int16())))
    return pa.concat_tables(tables)


def test_every_message_is_as_its_versions_are_alone() -> None:
    messages = [each for each in every_message(3) if max(map(len, each[2])) < 100_000]
    certain = 0
    for made in decoded(messages):
        versions = messages[made.first : made.end]
        assert {name for name, _, _ in versions} == {made.name}
        if made.batch is not None:
            made.batch.validate(full=True)
            assert pa.Table.from_batches([made.batch]).equals(alone(versions)), made.name
            certain += len(versions)
    assert certain > 0.5 * len(messages) > 400


@pytest.mark.parametrize("seed", range(20))
def test_versions_with_any_number_of_frames(seed: int) -> None:
    """Bits and offsets of a version begin anywhere in a byte or a line."""
    numbers = np.random.default_rng(seed)
    for name in (
        "MetadataResponse",
        "FetchRequest",
        "ShareFetchResponse",
        "ApiVersionsResponse",
        "DescribeQuorumResponse",
    ):
        messages: Given = [
            (
                name,
                version,
                [
                    encode(name, version, random_value(layout(name, version), int(case)))
                    for case in numbers.integers(0, 1_000, numbers.integers(1, 40))
                ],
            )
            for version in sorted(message(name).all_versions())
        ]
        (made,) = decoded(messages)
        if made.batch is not None:
            made.batch.validate(full=True)
            assert pa.Table.from_batches([made.batch]).equals(alone(messages)), name


def test_a_key_for_each_frame_stands_in_front() -> None:
    beat = encode("HeartbeatRequest", 4, {"groupId": "g", "memberId": "m"})
    old = encode("HeartbeatRequest", 0, {"groupId": "g", "memberId": "m"})
    messages = [
        ("HeartbeatRequest", 0, [old] * 2),
        ("HeartbeatRequest", 4, [beat] * 3),
        (None, 0, [b""]),
        ("ListGroupsRequest", 0, [b""]),
    ]
    keys = pa.array(["out", "a", "", "long" * 100, "é", "b", "last"]).slice(1)
    few = few_of(messages)
    order = np.array([5, 3, 2, 1, 0, 4, 2])
    made = list(decode_few(Few(few.messages, few.starts, few.content, few.ends, "exchange_id", keys, order)))
    heartbeats, lists = (table.batch for table in made)
    assert heartbeats is not None and lists is not None
    assert heartbeats.schema.names[:3] == ["exchange_id", "api_version", "group_id"]
    assert heartbeats.column("exchange_id").to_pylist() == ["last", "é", "long" * 100, "", "a"]
    assert heartbeats.column("api_version").to_pylist() == [0, 0, 4, 4, 4]
    assert lists.column("exchange_id").to_pylist() == ["long" * 100]
    for batch in (heartbeats, lists):
        batch.validate(full=True)


def tables(messages: Given) -> list[tuple[str, pa.RecordBatch | None]]:
    return [(made.name, made.batch) for made in decoded(messages)]


@pytest.mark.parametrize("room", [64, 4_000])
def test_where_there_is_little_room_more_is_made(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = every_message(1)[:200]
    expected = tables(messages)
    monkeypatch.setattr(few_module, "_ROOM_BYTES", room)
    assert tables(messages) == expected


@pytest.mark.parametrize("room", [1_003, 5_000, 20_011, 100_000])
def test_nothing_is_written_behind_the_room_that_there_is(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    canary, regions = 0xA5, []

    def guarded(size: int) -> np.ndarray:
        region = np.full(size + 4_096, canary, np.uint8)
        regions.append((region, size))
        return region[:size]

    messages = every_message(2)
    monkeypatch.setattr(few_module, "_ROOM_BYTES", room)
    monkeypatch.setattr(few_module, "allocate", lambda size: pa.py_buffer(guarded(size)))
    monkeypatch.setattr(scratch_module, "_FREE", [])
    name_count = len({name for name, _, _ in messages})
    for stage in (room, 1 << 20):
        scratch = scratch_module.Scratch()
        scratch.stage = guarded(stage)
        monkeypatch.setattr(few_module, "take", lambda scratch=scratch: scratch)
        assert len(decoded(messages)) == name_count
    assert len(regions) > 2
    for region, size in regions:
        assert (region[size:] == canary).all()


def test_the_first_call_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its area grows from message to message."""
    messages = every_message(1)[:200]
    expected = tables(messages)
    monkeypatch.setattr(scratch_module, "_FREE", [])
    assert tables(messages) == expected


def test_more_programs_than_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = every_message(1)[:200]
    expected = tables(messages)
    monkeypatch.setattr(scratch_module, "_MOST_JOBS", 7)
    monkeypatch.setattr(scratch_module, "_FREE", [])
    assert tables(messages) == expected


def test_versions_that_do_not_fit_together_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch_module, "_STAGE_BYTES", 4_096)
    monkeypatch.setattr(scratch_module, "_FREE", [])
    small = encode("HeartbeatRequest", 4, {"groupId": "g", "memberId": "m"})
    large = encode("HeartbeatRequest", 4, {"groupId": "g" * 5_000, "memberId": "m"})
    messages: Given = [
        ("HeartbeatRequest", 3, [small[:-1]]),
        ("HeartbeatRequest", 4, [large]),
        ("ListGroupsRequest", 0, [b""]),
    ]
    assert [made.batch is None for made in decoded(messages)] == [True, False]


def test_what_is_not_certain_is_left_and_the_others_are_read() -> None:
    good = encode("HeartbeatRequest", 4, {"groupId": "g", "memberId": "m"})
    nothing: Given = [("ListGroupsRequest", 0, [b""])]
    for bad in (good[:-1], good[:-1] + UNKNOWN_TAG):
        messages = [*nothing, ("HeartbeatRequest", 4, [good, bad, good]), *nothing, ("HeartbeatRequest", 4, [good] * 3)]
        assert [None if made.batch is None else len(made.batch) for made in decoded(messages)] == [1, None, 1, 3]
    messages = [("ListGroupsRequest", 0, [b""] * 70_000), ("HeartbeatRequest", 4, [good])]
    assert [None if made.batch is None else len(made.batch) for made in decoded(messages)] == [None, 1]


def test_no_message_at_all() -> None:
    assert decoded([]) == []
    assert decoded([(None, 0, [b"", b""])]) == []
