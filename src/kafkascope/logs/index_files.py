"""Reads `.index`, `.timeindex` and `.txnindex` files. An index that a running broker holds is longer than its entries:
the zeros at its end aren't entries."""

from dataclasses import dataclass
from struct import Struct
from typing import Generic, TypeVar

from kafkascope.errors import InputError
from kafkascope.limits import MAX_INDEX_BYTES
from kafkascope.logs.window import Source, Window

Entry = TypeVar("Entry")
_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")
_ABORTED = Struct(">hqqqq")


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    """The batch at `position` ends with `offset`."""

    offset: int
    position: int


@dataclass(frozen=True, slots=True)
class TimeEntry:
    """No record up to `offset` is later than `timestamp`, and the batch that ends with `offset` has that time."""

    timestamp: int
    offset: int


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """The transaction's records are from `first_offset` on, its abort marker is at `last_offset`."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class Entries(Generic[Entry]):
    """The entries and, in `left_over`, how many bytes at the end aren't a whole entry."""

    entries: tuple[Entry, ...]
    left_over: int


def read_offset_index(path: str, base_offset: int, source: Source | None = None) -> Entries[OffsetEntry]:
    data, left_over = _content(path, _OFFSET_ENTRY.size, source)
    rows = list(_OFFSET_ENTRY.iter_unpack(data))
    # The first entry is never of the first batch: a relative offset of 0 is a place that isn't used yet.
    used = next((index for index, (offset, _) in enumerate(rows) if not offset), len(rows))
    return Entries(tuple(OffsetEntry(base_offset + offset, position) for offset, position in rows[:used]), left_over)


def read_time_index(path: str, base_offset: int, source: Source | None = None) -> Entries[TimeEntry]:
    data, left_over = _content(path, _TIME_ENTRY.size, source)
    rows = list(_TIME_ENTRY.iter_unpack(data))
    # As Kafka's own tool takes it; here the first entry can be of the first batch.
    used = next((index for index, (time, offset) in enumerate(rows) if not offset and (index or not time)), len(rows))
    return Entries(tuple(TimeEntry(timestamp, base_offset + offset) for timestamp, offset in rows[:used]), left_over)


def read_transaction_index(path: str) -> Entries[AbortedTransaction]:
    data, left_over = _content(path, _ABORTED.size)
    return Entries(tuple(AbortedTransaction(*row) for row in _ABORTED.iter_unpack(data)), left_over)


def _content(path: str, entry_bytes: int, source: Source | None = None) -> tuple[bytes, int]:
    with Window(path, source) as window:
        if window.size > MAX_INDEX_BYTES:
            raise InputError(f"{path}: an index of {window.size} bytes; at most {MAX_INDEX_BYTES} are read")
        data = window.read(0, window.size)
    left_over = len(data) % entry_bytes
    # Of an index that a broker holds open most is zeros.
    used = -(-len(data[: len(data) - left_over].rstrip(b"\0")) // entry_bytes)
    return data[: used * entry_bytes], left_over
