"""Finds the records of batches and what their types are, and puts the bytes of many into one buffer, as Arrow has them.
Batches in another form than Kafka's are left to the careful reader."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from kafkascope.columnar.compiling.jit import entry, plain
from kafkascope.columnar.kernel.memory import copy_bytes, load_i16, load_i32, load_i64, store_32, store_64, word
from kafkascope.columnar.kernel.signatures import Bool, Int
from kafkascope.columnar.log.job import JOB_COORDINATOR
from kafkascope.columnar.log.record_walk import (
    HEADERS_COUNT,
    KEY,
    KEY_SIZE,
    OFFSET,
    TIMESTAMP,
    VALUE,
    VALUE_SIZE,
    read_record,
    read_varint,
)
from kafkascope.limits import MAX_RECORD_ITEMS

# Tasks: fill a table with records, gather bytes.
FRAME, GATHER = range(2)
# A job: the next batch and how many there are, the places of batches in the file, the first byte of the data and its
# place.
ROW, FRAMING_ROWS, POSITIONS, FRAMING_DATA, FRAMING_PLACE = range(5)
# A column of the table has `FRAMING_STRIDE` numbers, of which `USED` are set.
TABLE, FRAMING_STRIDE, USED = 5, 6, 7
# Whether types are in keys or in values; where there are decompressed records of a batch; room for one record.
KIND, FRAMING_UNPACKED_ROW, FRAMING_UNPACKED, FRAMING_UNPACKED_END, FRAMING_WALK = 8, 9, 10, 11, 12
FRAMING_JOB_WORDS = 13
# To gather: addresses and sizes, how many; where to write ends and bytes.
SOURCES, SIZES, FRAMING_COUNT, ENDS, FRAMING_BYTES, GATHER_WORDS = range(6)
# Results: all batches are in the table; it's full; the next batch is left to the careful reader, or must be
# decompressed.
DONE, FRAMING_FULL, FRAMING_CAREFUL, FRAMING_PACKED = range(4)
# Columns of the table. A record that has no type has `NO_TYPE`, which no number is; the version of a tombstone is −1.
NO_TYPE = -(1 << 40)
(
    AT_OFFSET, AT_TIMESTAMP, AT_BATCH, AT_NUMBER, AT_VERSION, AT_KEY, AT_KEY_SIZE, AT_VALUE, AT_VALUE_SIZE, COLUMNS,
) = range(10)  # fmt: skip
_HEADER_BYTES, _LOG_APPEND, _FAR = 61, 1 << 3, 1 << 62


@plain
def frame_records(job: Int) -> Int:
    while word(job, ROW) < word(job, FRAMING_ROWS):
        row, used = word(job, ROW), word(job, USED)
        at = word(job, FRAMING_DATA) + word(word(job, POSITIONS), row) - word(job, FRAMING_PLACE)
        start, end = at + _HEADER_BYTES, at + load_i32(at + 8) + 12
        count = load_i32(at + 57)
        if count:
            if word(job, FRAMING_UNPACKED_ROW) == row:
                start, end = word(job, FRAMING_UNPACKED), word(job, FRAMING_UNPACKED_END)
            elif load_i16(at + 21) & 7:
                return np.int64(FRAMING_PACKED)
            if count > MAX_RECORD_ITEMS or 7 * count > end - start:
                return np.int64(FRAMING_CAREFUL)
            if count > word(job, FRAMING_STRIDE) - used:
                return np.int64(FRAMING_FULL)
            if not _frame_batch(job, at, start, end, count):
                return np.int64(FRAMING_CAREFUL)
        store_64(job + 8 * USED, used + count)
        store_64(job + 8 * ROW, row + 1)
    return np.int64(DONE)


@plain
def _frame_batch(job: Int, at: Int, p: Int, end: Int, count: Int) -> Bool:
    base, first_time, walk = load_i64(at), load_i64(at + 27), word(job, FRAMING_WALK)
    if not (-_FAR < base < _FAR and -_FAR < first_time < _FAR):
        return False
    is_append, appended = load_i16(at + 21) & _LOG_APPEND, load_i64(at + 35)
    items, step = count, 8 * word(job, FRAMING_STRIDE)
    place = word(job, TABLE) + 8 * word(job, USED)
    for _ in range(count):
        p = read_record(p, end, base, first_time, walk)
        if p < 0:
            return False
        items += word(walk, HEADERS_COUNT)
        store_64(place, word(walk, OFFSET))
        store_64(place + step * AT_TIMESTAMP, appended if is_append else word(walk, TIMESTAMP))
        store_64(place + step * AT_BATCH, word(job, ROW))
        if not _type_of(job, walk, place, step):
            return False
        place += 8
    return p == end and items <= MAX_RECORD_ITEMS


@plain
def _type_of(job: Int, walk: Int, place: Int, step: Int) -> Bool:
    """Number and version, and key and value without them; key and value as they are for a record without a type."""
    key, key_size = word(walk, KEY), word(walk, KEY_SIZE)
    value, size = word(walk, VALUE), word(walk, VALUE_SIZE)
    number, version = np.int64(NO_TYPE), np.int64(-1)
    if word(job, KIND) == JOB_COORDINATOR:
        if key_size >= 2 and (size < 0 or size >= 2):
            number = load_i16(key)
            key, key_size = key + 2, key_size - 2
            if size >= 0:
                version = load_i16(value)
                value, size = value + 2, size - 2
    else:
        end = value + max(size, np.int64(0))
        frame, p = read_varint(value, end)
        if p >= 0 and frame == 1:
            number, p = read_varint(p, end)
            version, p = read_varint(p, end) if p >= 0 else (np.int64(-1), p)
            value, size = p, end - p
        if p < 0:
            # Cut off, or longer than Kafka writes it, which its reader takes too.
            return False
    store_64(place + step * AT_NUMBER, number)
    store_64(place + step * AT_VERSION, version)
    store_64(place + step * AT_KEY, key)
    store_64(place + step * AT_KEY_SIZE, key_size)
    store_64(place + step * AT_VALUE, value)
    store_64(place + step * AT_VALUE_SIZE, size)
    return True


@plain
def gather(job: Int) -> Int:
    """How many bytes were written, one after the other; sizes below 0 count as 0."""
    used = np.int64(0)
    store_32(word(job, ENDS), used)
    for index in range(word(job, FRAMING_COUNT)):
        size = max(word(word(job, SIZES), index), np.int64(0))
        copy_bytes(word(job, FRAMING_BYTES) + used, word(word(job, SOURCES), index), size)
        used += size
        store_32(word(job, ENDS) + 4 * index + 4, used)
    return used


@cache
def framing_kernel() -> Callable[[int, int], int]:
    """Takes a task and the address of its job."""
    made: Callable[[int, int], int] = entry("int64(int64, int64)")(_run)
    return made


def _run(task: Any, job: Any) -> Any:
    if task == FRAME:
        return frame_records(job)
    return gather(job)
