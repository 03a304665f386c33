"""Few frames of many messages together: the same tables as each message has alone, or none where that is unsure."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from kafkascope.codec.message import encode
from kafkascope.columnar import few as few_module
from kafkascope.columnar import scratch as scratch_module
from kafkascope.columnar.decode import decode_columns
from kafkascope.columnar.few import Few, decode_few
from kafkascope.schema.catalog import index, message
from kafkascope.schema.layout import layout
from tests.support.values import random_value

Given = Sequence[tuple[str, int, list[bytes]]]
UNKNOWN_TAG = bytes.fromhex("01630107")  # one tag, 99, of one byte


def every_message(count: int) -> Given:
    places = [(name, version) for name in index() for version in sorted(message(name).all_versions())]
    return [
        (name, version, [encode(name, version, random_value(layout(name, version), case)) for case in range(count)])
        for name, version in places
    ]


def decoded(given: Given) -> list[pa.Table | None]:
    """All of them in one piece of memory."""
    frames = [frame for _, _, some in given for frame in some]
    content = np.frombuffer(b"".join(frames) or b"\0", np.uint8)
    ends = np.cumsum([0, *map(len, frames)]).astype(np.int32)
    count = np.array([len(some) for _, _, some in given], np.int64)
    first = np.cumsum(count) - count
    base = np.full(len(given), content.ctypes.data, np.int64)
    few = Few([(name, version) for name, version, _ in given], base, ends.ctypes.data + 4 * first, count)
    made = list(decode_few(few))
    return [None if batch is None else pa.Table.from_batches([batch]) for batch in made]


def alone(name: str, version: int, frames: list[bytes]) -> pa.Table:
    return decode_columns(name, version, pa.array(frames, type=pa.binary()))


def test_every_message_and_version_is_as_it_is_alone() -> None:
    given = [each for each in every_message(3) if max(map(len, each[2])) < 100_000]
    certain = 0
    for each, table in zip(given, decoded(given), strict=True):
        if table is not None:
            table.validate(full=True)
            assert table.equals(alone(*each)), each[:2]
            certain += 1
    assert certain > 0.5 * len(given) > 400


@pytest.mark.parametrize("room", [64, 4_000])
def test_where_there_is_little_room_more_is_made(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = every_message(1)[:200]
    wanted = decoded(given)
    monkeypatch.setattr(few_module, "_ROOM_BYTES", room)
    assert decoded(given) == wanted


def test_the_first_call_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its area grows from message to message."""
    given = every_message(1)[:200]
    wanted = decoded(given)
    monkeypatch.setattr(scratch_module, "_FREE", [])
    assert decoded(given) == wanted


def test_what_is_not_certain_is_left_and_the_others_are_read() -> None:
    good = encode("HeartbeatRequest", 4, {"groupId": "g", "memberId": "m"})
    tagged = good[:-1] + UNKNOWN_TAG
    given = [
        ("HeartbeatRequest", 4, [good, good]),
        ("HeartbeatRequest", 4, [good, good[:-1], good]),
        ("HeartbeatRequest", 4, [good, tagged]),
        ("HeartbeatRequest", 4, [good] * 3),
        ("ListGroupsRequest", 0, [b""] * 70_000),
        ("HeartbeatRequest", 4, [good]),
    ]
    assert [None if table is None else len(table) for table in decoded(given)] == [2, None, None, 3, None, 1]
    assert alone("HeartbeatRequest", 4, [good] * 3)["_error"].null_count == 3


def test_no_message_at_all() -> None:
    assert decoded([]) == []
