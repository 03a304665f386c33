"""Reads the batches of a segment or snapshot in order. Never raises on what it contains: bytes that can't be read
become a `Damage`, and reading goes on at the next batch."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kafkascope.codec.records.budget import Budget
from kafkascope.codec.records.message_sets import LEAST_SIZES, decode_message
from kafkascope.codec.records.record_batch import HEADER_BYTES, decode_batch, decode_payload
from kafkascope.codec.records.record_types import BatchStart, Record, RecordBatch
from kafkascope.errors import DecodeError
from kafkascope.limits import MAX_FRAME_BYTES
from kafkascope.logs.resync import next_batch
from kafkascope.logs.window import Window

OVERHEAD_BYTES = 12
_MAGIC_AT = 16
_HIGHEST_MAGIC = 2
# More than a header, so that one read gives both.
_HEAD_BYTES = 64


class DamageKind(StrEnum):
    """`UNFINISHED` is the end of a file that a broker may be writing, or that a crash has cut: brokers remove it when
    they start."""

    BAD_HEADER = "bad header"
    UNREADABLE = "unreadable batch"
    TORN_TAIL = "torn tail"
    UNFINISHED = "unfinished tail"
    ZEROS = "zeros"


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that aren't a batch: from where, how many, and why. `expected` is what the torn batch says of its size."""

    position: int
    length: int
    kind: DamageKind
    detail: str


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch by its header; its records stay packed. `position` and `size` are those in the file."""

    position: int
    size: int
    header: RecordBatch

    def records(self) -> tuple[Record, ...]:
        """Raises `DecodeError` for those that Java couldn't read either."""
        header, where = self.header, f"batch at byte {self.position}"
        budget = Budget()
        if header.magic == _HIGHEST_MAGIC:
            start = BatchStart(
                header.base_offset,
                header.attributes,
                header.base_timestamp,
                header.max_timestamp,
                header.records_count or 0,
            )
            payload = header.payload or b""
            return decode_payload(start, payload, 0, len(payload), budget, where)[0]
        return header.records or ()


def read_batches(
    window: Window,
    start: int = 0,
    end: int | None = None,
    *,
    last: bool = False,
    unpack_sets: bool = False,
    previous: int = -1,
) -> Iterator[Batch | Damage]:
    """From `start`, which is the start of a batch, up to the first batch at or after `end`. `last` says that the file
    may still be written: what is cut at its end is unfinished, no damage. `unpack_sets` unpacks compressed messages of
    magic 0 and 1, whose headers tell only their last offset."""
    position = start
    while position < window.size and (end is None or position < end):
        item = _read_one(window, position, previous, unpack_sets)
        if isinstance(item, Batch):
            previous = item.header.last_offset
            position += item.size
        else:
            item = _judged(window, item, last)
            position += item.length
        yield item


def _read_one(window: Window, position: int, previous: int, unpack_sets: bool) -> Batch | Damage:
    left = window.size - position
    head, at = window.locate(position, min(_HEAD_BYTES, left))
    if left <= _MAGIC_AT:
        return Damage(position, left, DamageKind.TORN_TAIL, f"{left} bytes are left, a header needs more")
    size = OVERHEAD_BYTES + int.from_bytes(head[at + 8 : at + 12], "big", signed=True)
    magic = head[at + _MAGIC_AT]
    least = HEADER_BYTES if magic == _HIGHEST_MAGIC else OVERHEAD_BYTES + LEAST_SIZES[magic & 1]
    if magic > _HIGHEST_MAGIC or size < least:
        what = f"magic {magic}" if magic > _HIGHEST_MAGIC else f"length {size - OVERHEAD_BYTES}"
        return _damaged(window, position, previous, DamageKind.BAD_HEADER, f"no batch has {what}")
    if size > left:
        detail = f"a batch of {size} bytes, of which {left} are left"
        return _damaged(window, position, previous, DamageKind.TORN_TAIL, detail)
    if size > MAX_FRAME_BYTES:
        detail = f"a batch of {size} bytes, more than {MAX_FRAME_BYTES}"
        return Damage(position, size, DamageKind.UNREADABLE, detail)
    data, at = window.locate(position, size)
    if len(data) - at < size:
        return Damage(position, left, DamageKind.TORN_TAIL, "the file was cut while it was read")
    decode_one = decode_batch if magic == _HIGHEST_MAGIC else decode_message
    budget = Budget() if unpack_sets and magic < _HIGHEST_MAGIC else None
    try:
        header, _ = decode_one(data, at, at + size, budget, f"batch at byte {position}")
    except DecodeError as error:
        return _damaged(window, position, previous, DamageKind.UNREADABLE, _without_place(str(error)), size)
    if not header.crc_ok and not _begins_batch(window, position + size):
        # Its content may be damaged, or its length: then the next batch starts earlier.
        next_at = next_batch(window, position + 1, previous, position + size)
        if next_at is not None:
            return Damage(
                position, next_at - position, DamageKind.BAD_HEADER, f"length {size - OVERHEAD_BYTES} is wrong"
            )
    return Batch(position, size, header)


def _damaged(
    window: Window, position: int, previous: int, kind: DamageKind, detail: str, size: int | None = None
) -> Damage:
    """Up to the next batch. If its own length leads there, that is it."""
    if size is not None and _begins_batch(window, position + size):
        return Damage(position, size, kind, detail)
    next_at = next_batch(window, position + 1, previous)
    if next_at is None:
        return Damage(position, window.size - position, kind, detail)
    kind = DamageKind.BAD_HEADER if kind is DamageKind.TORN_TAIL else kind
    return Damage(position, next_at - position, kind, detail)


def _judged(window: Window, damage: Damage, last: bool) -> Damage:
    """What the end of a file is: zeros of a preallocated file, the batch that is being written, or a loss."""
    if damage.position + damage.length < window.size:
        return damage
    if damage.kind is DamageKind.BAD_HEADER and _is_zeros(window, damage.position):
        return Damage(damage.position, damage.length, DamageKind.ZEROS, "the file is preallocated, or its end was lost")
    if damage.kind is DamageKind.TORN_TAIL and (last or window.has_grown()):
        return Damage(damage.position, damage.length, DamageKind.UNFINISHED, damage.detail)
    return damage


def _begins_batch(window: Window, position: int) -> bool:
    """Whether the file ends there, or something that may be a batch begins."""
    left = window.size - position
    if left <= _MAGIC_AT:
        return left >= 0
    head = window.read(position, _HEAD_BYTES)
    length = int.from_bytes(head[8:12], "big", signed=True)
    return len(head) > _MAGIC_AT and head[_MAGIC_AT] <= _HIGHEST_MAGIC and length >= LEAST_SIZES[0] and head[0] < 128


def _is_zeros(window: Window, position: int) -> bool:
    step = 1 << 16
    return all(not any(window.read(at, step)) for at in range(position, window.size, step))


def _without_place(detail: str) -> str:
    """Without the batch, which the damage names, and without offsets in a window."""
    return detail.partition(": ")[2].partition(" (offset ")[0]
