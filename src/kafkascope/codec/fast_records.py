"""Records of magic 2 as Kafka writes them in, `Record`s out, as fast as plain Python goes.

At anything that is not the one way Kafka writes a record it raises `Surprise`, IndexError or UnicodeError: the careful
`record_walk` then starts over and says what it was. The varints of one and two bytes stand in line, seven times over,
because a call costs more than a record's other fields together.
"""

from kafkascope.codec.budget import Budget
from kafkascope.codec.fast_decode import Surprise
from kafkascope.codec.record_types import BatchStart, Draft, Header, Record
from kafkascope.codec.varint import fast_int, fast_long

SURPRISES = (Surprise, IndexError, UnicodeError)
# Adding any delta of nine bytes or less to these stays within int64.
_SAFE = 1 << 62


def fast_records(batch: BatchStart, data: bytes, position: int, end: int, budget: Budget, where: str) -> list[Record]:
    # Slices may run past a record's end unchecked: positions only grow, and each record's last is compared.
    base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
    if not (-_SAFE < base_offset < _SAFE and -_SAFE < base_timestamp < _SAFE):
        raise Surprise
    records: list[Record] = []
    append = records.append
    new = Draft.__new__
    for _ in range(batch.records_count):
        size = data[position]
        if size < 0x80:
            position += 1
        elif 0 < (more := data[position + 1]) < 0x80:
            size += (more << 7) - 0x80
            position += 2
        else:
            size, position = fast_int(data, position)
        if size & 1:
            raise Surprise
        stop = position + (size >> 1)

        attributes = data[position]
        delta = data[position + 1]
        if delta < 0x80:
            position += 2
        elif 0 < (more := data[position + 2]) < 0x80:
            delta += (more << 7) - 0x80
            position += 3
        else:
            delta, position = fast_long(data, position + 1)
        record = new(Draft)
        record.timestamp = base_timestamp + ((delta >> 1) ^ -(delta & 1))

        delta = data[position]
        if delta < 0x80:
            position += 1
        elif 0 < (more := data[position + 1]) < 0x80:
            delta += (more << 7) - 0x80
            position += 2
        else:
            delta, position = fast_int(data, position)
        record.offset = base_offset + ((delta >> 1) ^ -(delta & 1))

        size = data[position]
        if size < 0x80:
            position += 1
        elif 0 < (more := data[position + 1]) < 0x80:
            size += (more << 7) - 0x80
            position += 2
        else:
            size, position = fast_int(data, position)
        if size & 1:
            if size != 1:
                raise Surprise
            record.key = None
        else:
            size = position + (size >> 1)
            record.key = data[position:size]
            position = size

        size = data[position]
        if size < 0x80:
            position += 1
        elif 0 < (more := data[position + 1]) < 0x80:
            size += (more << 7) - 0x80
            position += 2
        else:
            size, position = fast_int(data, position)
        if size & 1:
            if size != 1:
                raise Surprise
            record.value = None
        else:
            size = position + (size >> 1)
            record.value = data[position:size]
            position = size

        if data[position]:
            record.headers, position = _fast_headers(data, position, stop, budget, where)
        else:
            record.headers = ()
            position += 1
        if position != stop or attributes > 0x7F:
            raise Surprise
        record.attributes = attributes
        record.__class__ = Record  # type: ignore[assignment]
        append(record)  # type: ignore[arg-type]
    if position != end:
        raise Surprise
    return records


def _fast_headers(data: bytes, position: int, stop: int, budget: Budget, where: str) -> tuple[tuple[Header, ...], int]:
    count, position = fast_int(data, position)
    if count & 1 or count > stop - position:
        raise Surprise
    budget.take_items(count >> 1, where)
    headers: list[Header] = []
    for _ in range(count >> 1):
        size, position = fast_int(data, position)
        end = position + (size >> 1)
        if size & 1:
            raise Surprise
        key = data[position:end].decode()
        size, position = fast_int(data, end)
        if size & 1:
            if size != 1:
                raise Surprise
            headers.append((key, None))
        else:
            end = position + (size >> 1)
            headers.append((key, data[position:end]))
            position = end
    return tuple(headers), position
