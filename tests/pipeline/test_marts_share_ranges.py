"""What a message acknowledged or acquired is taken apart into events, in the order that the ledger wants."""

from typing import Any

import pyarrow as pa
import pytest

from kafkascope.pipeline.mart.share import ranges as share_ranges
from kafkascope.pipeline.mart.share.events import EVENT_COLUMNS
from kafkascope.pipeline.mart.share.ranges import events_of

_TYPES = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64()}
_RANGE = [("first_offset", pa.int64()), ("last_offset", pa.int64())]
_ACKNOWLEDGED = pa.struct([*_RANGE, ("acknowledge_types", pa.list_(pa.int8()))])
_ACQUIRED = pa.struct([*_RANGE, ("delivery_count", pa.int16())])
SCHEMA = pa.schema(
    {
        **{name: _TYPES[kind] for name, kind in EVENT_COLUMNS.items() if kind in _TYPES},
        "cluster": pa.string(),
        "acknowledged": pa.list_(_ACKNOWLEDGED),
        "acquired": pa.list_(_ACQUIRED),
    }
)


def row(kind: str, at_us: int, exchange_id: str, **values: Any) -> dict[str, Any]:
    order = {"acknowledged": 0, "session": 1, "acquired": 6}[kind]
    return {"kind": kind, "at_us": at_us, "order": order, "group_id": "g", "exchange_id": exchange_id, **values}


def acknowledged(*ranges: tuple[int, int, list[int]]) -> list[dict[str, Any]]:
    return [{"first_offset": first, "last_offset": last, "acknowledge_types": types} for first, last, types in ranges]


def acquired(*ranges: tuple[int, int, int]) -> list[dict[str, Any]]:
    return [{"first_offset": first, "last_offset": last, "delivery_count": count} for first, last, count in ranges]


def events(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    return [row for some in events_of(batch) for row in zip(*(some[name] for name in names), strict=True)]


PLACE = {"topic_id": "t", "partition": 1}
ROWS = [
    row(
        "acknowledged",
        5,
        "a",
        **PLACE,
        error_code=121,
        acknowledged=acknowledged((30, 39, [1]), (40, 40, []), (20, 24, [1, 1, 2, 1, 1])),
    ),
    row("session", 5, "a", **PLACE, value=-1, error_code=0),
    row("acquired", 6, "a", **PLACE, acquired=acquired((90, 99, 2), (50, 59, 1))),
    row("acknowledged", 7, "b", **PLACE, acknowledged=[]),
    row("acquired", 8, "b", **PLACE),
]
EVENTS = [
    ("acknowledged", "t", 1, 20, 21, 1, None, 121),
    ("acknowledged", "t", 1, 22, 22, 2, None, 121),
    ("acknowledged", "t", 1, 23, 24, 1, None, 121),
    ("acknowledged", "t", 1, 30, 39, 1, None, 121),
    ("session", "t", 1, None, None, -1, None, 0),
    ("acquired", "t", 1, 50, 59, None, 1, None),
    ("acquired", "t", 1, 90, 99, None, 2, None),
]
_NAMES = ("kind", "topic_id", "partition", "first_offset", "last_offset", "value", "delivery_count", "error_code")


@pytest.mark.parametrize("at_once", [1, 4, 1000])
def test_rows_become_events_by_offset(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are at once; a row with nothing inside is no event."""
    monkeypatch.setattr(share_ranges, "_EVENTS", at_once)
    assert events(ROWS, *_NAMES) == EVENTS
    assert events([row("acquired", 8, "b")], *_NAMES) == []
    assert events([], *_NAMES) == []


def test_an_exchange_that_was_seen_twice_is_one() -> None:
    twice = row("acquired", 6, "a", partition=0, acquired=acquired((0, 9, 1), (20, 29, 1)))
    other = row("acquired", 6, "b", partition=0, acquired=acquired((10, 19, 1)))
    next_partition = row("acquired", 6, "b", partition=1, acquired=acquired((0, 9, 1)))
    rows_found = events([twice, twice, other, next_partition], "exchange_id", "partition", "first_offset")
    assert rows_found == [
        ("a", 0, 0), ("a", 0, 0), ("a", 0, 20), ("a", 0, 20), ("b", 0, 10), ("b", 1, 0),
    ]  # fmt: skip
