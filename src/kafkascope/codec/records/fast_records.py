"""Decodes well-formed records of magic 2, in C, or as fast as plain Python can if the package was built without a
compiler.

For anything that isn't the one way Kafka writes a record it raises `NotCanonical`, IndexError or UnicodeError: the
careful `record_walk` then starts over and reports what it was.

A call costs more than reading a field, so the loop is compiled from text in which `VARINT name` is replaced by code
that reads one, and `BYTES name` by code that reads a length and its bytes. Slices may run past a record's end
unchecked: positions only grow, and each record's last one is compared.
"""

from collections.abc import Callable, Sequence
from typing import Any

from kafkascope.codec.not_canonical import NotCanonical
from kafkascope.codec.records.budget import Budget
from kafkascope.codec.records.record_types import BatchStart, Draft, Header, Record
from kafkascope.codec.varint import fast_int, fast_long

native: Any
try:
    from kafkascope.codec import _native_records  # type: ignore[attr-defined]

    native = _native_records
except ImportError:
    native = None

SURPRISES = (NotCanonical, IndexError, UnicodeError)
# Adding any delta of nine bytes or less to these stays within int64.
_SAFE = 1 << 62

_LOOP = """
def loop(batch, data, position, end, budget):
    base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
    records = []
    append = records.append
    new = Draft.__new__
    for _ in range(batch.records_count):
        VARINT size
        if size & 1:
            raise NotCanonical
        stop = position + (size >> 1)
        record = new(Draft)
        record.attributes = attributes = data[position]
        if attributes > 127:
            raise NotCanonical
        position += 1
        VARLONG delta
        record.timestamp = base_timestamp + ((delta >> 1) ^ -(delta & 1))
        VARINT delta
        record.offset = base_offset + ((delta >> 1) ^ -(delta & 1))
        BYTES key
        BYTES value
        if data[position]:
            record.headers, position = headers(data, position, stop, budget)
        else:
            record.headers = ()
            position += 1
        if position != stop:
            raise NotCanonical
        record.__class__ = Record
        append(record)
    if position != end:
        raise NotCanonical
    return records
"""
_BYTES = """
        VARINT size
        if not size & 1:
            after = position + (size >> 1)
            record.{name} = data[position:after]
            position = after
        elif size == 1:
            record.{name} = None
        else:
            raise NotCanonical
"""
# Up to three bytes inline; a last byte of zero would have been omitted.
_VARINT = """
        {name} = data[position]
        position += 1
        if {name} > 127:
            second = data[position]
            position += 1
            if second > 127:
                third = data[position]
                if 0 < third < 128:
                    {name} += (second << 7) + (third << 14) - 0x4080
                    position += 1
                else:
                    {name}, position = {longer}(data, position - 2)
            elif second:
                {name} += (second << 7) - 0x80
            else:
                raise NotCanonical
"""


def fast_records(batch: BatchStart, data: bytes, start: int, end: int, budget: Budget) -> Sequence[Record]:
    """All records between `start` and `end`, or one of `SURPRISES`."""
    if _read is not None:
        read = _read(data, start, end, batch.records_count, batch.base_offset, batch.base_timestamp, budget.items_left)
        if read is None:
            raise NotCanonical
        records, headers = read
        budget.items_left -= headers
        return records  # type: ignore[no-any-return]
    if not (-_SAFE < batch.base_offset < _SAFE and -_SAFE < batch.base_timestamp < _SAFE):
        raise NotCanonical
    return _loop(batch, data, start, end, budget)


def _headers(data: bytes, position: int, stop: int, budget: Budget) -> tuple[tuple[Header, ...], int]:
    count, position = fast_int(data, position)
    if count & 1 or count > stop - position or count >> 1 > budget.items_left:
        raise NotCanonical
    budget.items_left -= count >> 1
    headers: list[Header] = []
    for _ in range(count >> 1):
        size, position = fast_int(data, position)
        if size & 1:
            raise NotCanonical
        end = position + (size >> 1)
        key = data[position:end].decode()
        size, position = fast_int(data, end)
        if not size & 1:
            end = position + (size >> 1)
            headers.append((key, data[position:end]))
            position = end
        elif size == 1:
            headers.append((key, None))
        else:
            raise NotCanonical
    return tuple(headers), position


def _compile() -> Callable[[BatchStart, bytes, int, int, Budget], list[Record]]:
    text = _LOOP
    for name in ("key", "value"):
        text = text.replace(f"        BYTES {name}\n", _BYTES.format(name=name))
    for word, longer in (("VARINT", "fast_int"), ("VARLONG", "fast_long")):
        for name in ("size", "delta"):
            text = text.replace(f"        {word} {name}\n", _VARINT.format(name=name, longer=longer))
    namespace: dict[str, Any] = {
        "Draft": Draft,
        "Record": Record,
        "NotCanonical": NotCanonical,
        "fast_int": fast_int,
        "fast_long": fast_long,
        "headers": _headers,
    }
    exec(compile(text, "<fast records>", "exec"), namespace)
    loop: Callable[[BatchStart, bytes, int, int, Budget], list[Record]] = namespace["loop"]
    return loop


# In the order of the C module's enum.
_SLOTS = tuple(getattr(Record, name) for name in "offset timestamp key value headers attributes".split())
_read = native.Reader(Record, _SLOTS).read if native is not None else None
_loop = _compile()
