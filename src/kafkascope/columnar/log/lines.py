"""Writes batches and their records as lines of JSON, the same as `logs.rows` and `codec` make of them. What only those
can write is left to them: the kernel stops before it."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from kafkascope.columnar.batch_headers import HEADER_FIELDS
from kafkascope.columnar.compiling.jit import entry, inline, plain
from kafkascope.columnar.kernel.memory import load_i16, store_8, store_64, word
from kafkascope.columnar.kernel.signatures import Bool, Int, Pair
from kafkascope.columnar.log.job import (
    AFTER_RECORD,
    AT_BASE,
    AT_COMPRESSION,
    AT_CONTROL,
    AT_COUNT,
    AT_CRC,
    AT_CRC_OK,
    AT_EPOCH,
    AT_HEADER_KEY,
    AT_HEADER_VALUE,
    AT_HEADERS,
    AT_HORIZON,
    AT_KEY_BYTES,
    AT_LAST,
    AT_LAST_SEQUENCE,
    AT_MAX_TIMESTAMP,
    AT_NEXT_HEADER,
    AT_OFFSET,
    AT_PLAIN_KEY,
    AT_POSITION,
    AT_PROBLEM,
    AT_PRODUCER,
    AT_PRODUCER_EPOCH,
    AT_RECORD_END,
    AT_RECORD_EPOCH,
    AT_RECORD_PRODUCER,
    AT_RECORD_SEQUENCE,
    AT_SEQUENCE,
    AT_SIZE,
    AT_TIMESTAMP,
    AT_TIMESTAMP_TYPE,
    AT_TRANSACTIONAL,
    AT_VALUE,
    AT_VALUE_BYTES,
    BATCH_ROOM,
    BATCHES,
    CAREFUL_BATCH,
    CAREFUL_RECORD,
    COMPRESSION_NAMES,
    CONTROL_ENTRIES,
    DONE,
    ENTRIES,
    ENTRY_WORDS,
    FALSE,
    FIRST_MS,
    FIRST_OFFSET,
    JOB_CAREFUL,
    JOB_CONTROL,
    JOB_DATA,
    JOB_FRAMED,
    JOB_HEADERS,
    JOB_NULL,
    JOB_PACKED,
    JOB_PLACE,
    JOB_RECORDS,
    JOB_ROWS,
    JOB_STACK,
    JOB_STATE,
    JOB_STRIDE,
    JOB_TEXTS,
    JOB_UNKNOWN_TYPE,
    JOB_UNPACKED,
    JOB_UNPACKED_END,
    JOB_UNPACKED_ROW,
    JOB_VERSION,
    JOB_WALK,
    KEY_CODE,
    KIND,
    LAST_MS,
    LAST_OFFSET,
    NO_RECORDS,
    NO_SPACE,
    NUMBER,
    NUMBERS,
    ONLY_RECORDS,
    OUT,
    PLAIN,
    RECORD,
    RECORD_AT,
    RECORD_ROOM,
    ROOM,
    ROW,
    TIMESTAMP_TYPES,
    TRUE,
    TYPE_TEXT,
    TYPE_TEXT_SIZE,
    UNWANTED,
    VALUE_CODE,
    VALUE_SKIP,
    VERSIONS,
    WRITTEN,
)  # fmt: skip
from kafkascope.columnar.log.json_machine import write_message
from kafkascope.columnar.log.record_walk import (
    HEADERS_COUNT,
    KEY,
    KEY_SIZE,
    OFFSET,
    TIMESTAMP,
    VALUE,
    VALUE_SIZE,
    WALK_HEADERS,
    are_records,
    read_record,
    read_size,
    read_varint,
)
from kafkascope.columnar.log.text import (
    LONGEST_ESCAPE,
    NO_ROOM,
    NUMBER_ROOM,
    REFUSED,
    put,
    put_base64,
    put_number,
    put_text,
)
from kafkascope.limits import MAX_RECORD_ITEMS

_AT = {name: index for index, name in enumerate(HEADER_FIELDS)}
_POSITION, _SIZE, _BASE, _LAST = (_AT[name] for name in ("position", "size_bytes", "base_offset", "last_offset"))
_EPOCH, _CRC, _ATTRIBUTES, _COUNT = (_AT[name] for name in ("leader_epoch", "crc", "attributes", "records_count"))
_FIRST_TIME, _MAX_TIME = _AT["base_timestamp_ms"], _AT["max_timestamp_ms"]
_PRODUCER, _PRODUCER_EPOCH, _SEQUENCE = (_AT[name] for name in ("producer_id", "producer_epoch", "base_sequence"))
_HEADER_BYTES = 61
_LOG_APPEND, _TRANSACTIONAL, _CONTROL, _HORIZON = 1 << 3, 1 << 4, 1 << 5, 1 << 6
# A record's offset and time, and a batch's last offset, stay within int64 from here.
_FAR = 1 << 62
_MOST_SEQUENCE = 0x7FFFFFFF
# Instead of a line's end, besides `REFUSED` and `NO_ROOM`.
_UNFILLED, _LEFT_OUT = NO_ROOM - 1, NO_ROOM - 2


@inline
def _field(job: Int, field: Int, row: Int) -> Int:
    return word(word(job, JOB_HEADERS), field * word(job, JOB_STRIDE) + row)


@inline
def _text(job: Int, text: Int, out: Int) -> Int:
    texts = word(job, JOB_TEXTS)
    return put(out, word(texts, 2 * text), word(texts, 2 * text + 1))


@inline
def _number(job: Int, text: Int, out: Int, value: Int) -> Int:
    return put_number(_text(job, text, out), value)


@inline
def _flag(job: Int, text: Int, out: Int, value: Int) -> Int:
    return _text(job, TRUE if value else FALSE, _text(job, text, out))


@plain
def write_lines(job: Int) -> Int:
    """One of the results in `job`. Every line before the place where it stopped is whole."""
    while word(job, ROW) < word(job, JOB_ROWS):
        row = word(job, ROW)
        if word(job, RECORD) < 0:
            result = _begin(job, row)
            if result != DONE:
                return result
        if _kind(job, row) != NO_RECORDS:
            result = _records(job, row)
            if result != DONE:
                return result
        store_64(job + 8 * RECORD, np.int64(-1))
        store_64(job + 8 * ROW, row + 1)
    return np.int64(DONE)


@inline
def _kind(job: Int, row: Int) -> Int:
    is_control = _field(job, _ATTRIBUTES, row) & _CONTROL
    return np.int64(JOB_CONTROL) if is_control else word(job, KIND)


@inline
def _payload(job: Int, row: Int) -> Pair:
    if word(job, JOB_UNPACKED_ROW) == row:
        return word(job, JOB_UNPACKED), word(job, JOB_UNPACKED_END)
    at = word(job, JOB_DATA) + _field(job, _POSITION, row) - word(job, JOB_PLACE)
    return at + _HEADER_BYTES, at + _field(job, _SIZE, row)


@plain
def _begin(job: Int, row: Int) -> Int:
    """Checks the framing of all records of a batch, and writes its line."""
    base, first_time = _field(job, _BASE, row), _field(job, _FIRST_TIME, row)
    if not (-_FAR < base < _FAR and -_FAR < first_time < _FAR):
        return np.int64(CAREFUL_BATCH)
    attributes, count = _field(job, _ATTRIBUTES, row), _field(job, _COUNT, row)
    start = np.int64(0)
    if _kind(job, row) != NO_RECORDS and count:
        if attributes & 7 and word(job, JOB_UNPACKED_ROW) != row:
            return np.int64(JOB_PACKED)
        start, end = _payload(job, row)
        if count > MAX_RECORD_ITEMS or not are_records(start, end, count, base, first_time, word(job, JOB_WALK)):
            return np.int64(CAREFUL_BATCH)
    if not word(job, ONLY_RECORDS):
        out = word(job, OUT)
        if word(job, ROOM) - out < word(job, BATCH_ROOM):
            return np.int64(NO_SPACE)
        store_64(job + 8 * OUT, _batch_line(job, row, out))
        store_64(job + 8 * BATCHES, word(job, BATCHES) + 1)
    store_64(job + 8 * RECORD, np.int64(0))
    store_64(job + 8 * RECORD_AT, start)
    return np.int64(DONE)


@plain
def _batch_line(job: Int, row: Int, out: Int) -> Int:
    base, last = _field(job, _BASE, row), _field(job, _LAST, row)
    attributes, sequence = _field(job, _ATTRIBUTES, row), _field(job, _SEQUENCE, row)
    out = _number(job, AT_POSITION, out, _field(job, _POSITION, row))
    out = _number(job, AT_SIZE, out, _field(job, _SIZE, row))
    out = _number(job, AT_BASE, out, base)
    out = _number(job, AT_LAST, out, last)
    out = _number(job, AT_COUNT, out, _field(job, _COUNT, row))
    out = _text(job, COMPRESSION_NAMES + (attributes & 7), _text(job, AT_COMPRESSION, out))
    is_append = np.int64(attributes & _LOG_APPEND != 0)
    out = _text(job, TIMESTAMP_TYPES + is_append, _text(job, AT_TIMESTAMP_TYPE, out))
    out = _number(job, AT_MAX_TIMESTAMP, out, _field(job, _MAX_TIME, row))
    out = _text(job, AT_HORIZON, out)
    out = put_number(out, _field(job, _FIRST_TIME, row)) if attributes & _HORIZON else _text(job, JOB_NULL, out)
    out = _number(job, AT_EPOCH, out, _field(job, _EPOCH, row))
    out = _number(job, AT_PRODUCER, out, _field(job, _PRODUCER, row))
    out = _number(job, AT_PRODUCER_EPOCH, out, _field(job, _PRODUCER_EPOCH, row))
    out = _number(job, AT_SEQUENCE, out, sequence)
    last_sequence = np.int64(-1) if sequence < 0 else (sequence + last - base) & _MOST_SEQUENCE
    out = _number(job, AT_LAST_SEQUENCE, out, last_sequence)
    out = _flag(job, AT_TRANSACTIONAL, out, attributes & _TRANSACTIONAL)
    out = _flag(job, AT_CONTROL, out, attributes & _CONTROL)
    out = _number(job, AT_CRC, out, _field(job, _CRC, row))
    return _text(job, AT_CRC_OK, out)


@plain
def _records(job: Int, row: Int) -> Int:
    count, walk = _field(job, _COUNT, row), word(job, JOB_WALK)
    base, first_time = _field(job, _BASE, row), _field(job, _FIRST_TIME, row)
    _, end = _payload(job, row)
    while word(job, RECORD) < count:
        after = read_record(word(job, RECORD_AT), end, base, first_time, walk)
        if _field(job, _ATTRIBUTES, row) & _LOG_APPEND:
            store_64(walk + 8 * TIMESTAMP, _field(job, _MAX_TIME, row))
        out = _record_line(job, row, walk) if _is_taken(job, walk) else np.int64(_LEFT_OUT)
        if out < 0 and out != _LEFT_OUT:
            store_64(job + 8 * AFTER_RECORD, after)
            if out == NO_ROOM:
                return np.int64(NO_SPACE)
            return np.int64(CAREFUL_RECORD) if out == REFUSED else np.int64(JOB_UNKNOWN_TYPE)
        if out != _LEFT_OUT:
            store_64(job + 8 * OUT, out)
            store_64(job + 8 * JOB_RECORDS, word(job, JOB_RECORDS) + 1)
        store_64(job + 8 * RECORD, word(job, RECORD) + 1)
        store_64(job + 8 * RECORD_AT, after)
    return np.int64(DONE)


@inline
def _is_taken(job: Int, walk: Int) -> Bool:
    in_time = word(job, FIRST_MS) <= word(walk, TIMESTAMP) <= word(job, LAST_MS)
    return in_time and word(job, FIRST_OFFSET) <= word(walk, OFFSET) <= word(job, LAST_OFFSET)


@plain
def _record_line(job: Int, row: Int, walk: Int) -> Int:
    """Where the line ends; `REFUSED`, `NO_ROOM`, `_UNFILLED` for an entry that nobody has filled, or `_LEFT_OUT`."""
    out, room, kind = word(job, OUT), word(job, ROOM), _kind(job, row)
    if room - out < word(job, RECORD_ROOM):
        return np.int64(NO_ROOM)
    type_ = np.int64(0)
    value, value_end = word(walk, VALUE), word(walk, VALUE) + word(walk, VALUE_SIZE)
    if kind != PLAIN:
        type_, value = _entry(job, kind, walk)
        if type_ < 0:
            return type_
    sequence = _field(job, _SEQUENCE, row)
    if sequence < 0:
        sequence = np.int64(-1)
    else:
        sequence = (sequence + word(walk, OFFSET) - _field(job, _BASE, row)) & _MOST_SEQUENCE
    out = _number(job, AT_OFFSET, out, word(walk, OFFSET))
    out = _number(job, AT_TIMESTAMP, out, word(walk, TIMESTAMP))
    out = _number(job, AT_RECORD_EPOCH, out, _field(job, _EPOCH, row))
    out = _number(job, AT_RECORD_PRODUCER, out, _field(job, _PRODUCER, row))
    out = _number(job, AT_RECORD_SEQUENCE, out, sequence)
    out = _size(job, AT_KEY_BYTES, out, word(walk, KEY_SIZE))
    out = _size(job, AT_VALUE_BYTES, out, word(walk, VALUE_SIZE))
    if kind == PLAIN:
        return _plain_content(job, walk, out, room)
    out = put(out, word(type_, TYPE_TEXT), word(type_, TYPE_TEXT_SIZE))
    if word(type_, KEY_CODE):
        key = word(walk, KEY)
        out = write_message(word(type_, KEY_CODE), key + 2, key + word(walk, KEY_SIZE), out, room, word(job, JOB_STACK))
        if out < 0:
            return out
    if room - out < word(job, RECORD_ROOM):
        return np.int64(NO_ROOM)
    out = _text(job, AT_VALUE, out)
    if word(type_, VALUE_CODE):
        out = write_message(word(type_, VALUE_CODE), value, value_end, out, room, word(job, JOB_STACK))
        if out < 0:
            return out
        if room - out < word(job, RECORD_ROOM):
            return np.int64(NO_ROOM)
    else:
        out = _text(job, JOB_NULL, out)
    return _text(job, AT_PROBLEM, out)


@inline
def _size(job: Int, text: Int, out: Int, size: Int) -> Int:
    out = _text(job, text, out)
    return put_number(out, size) if size >= 0 else _text(job, JOB_NULL, out)


@plain
def _entry(job: Int, kind: Int, walk: Int) -> Pair:
    """The entry of a record's type and version, and where its value's message begins. Instead of an entry: `REFUSED`,
    `_UNFILLED` if Python must fill it first, or `_LEFT_OUT`."""
    key, key_size = word(walk, KEY), word(walk, KEY_SIZE)
    value, value_size = word(walk, VALUE), word(walk, VALUE_SIZE)
    entries, refused = word(job, ENTRIES), np.int64(REFUSED)
    if kind == JOB_FRAMED:
        end = value + max(value_size, np.int64(0))
        frame, value = read_varint(value, end)
        if value < 0 or frame != 1:
            return refused, value
        number, value = read_varint(value, end)
        if value < 0:
            return refused, value
        version, value = read_varint(value, end)
        if value < 0:
            return refused, value
    else:
        place = np.int64(0)
        if kind == JOB_CONTROL:
            entries, place = word(job, CONTROL_ENTRIES), np.int64(2)
        if key_size < place + 2:
            return refused, value
        number = load_i16(key + place)
        if value_size < 0:
            version = np.int64(-1)
        elif value_size < 2:
            return refused, value
        else:
            version = load_i16(value)
            if version < 0:
                return refused, value
    if not (0 <= number < NUMBERS and -1 <= version < VERSIONS - 1):
        return refused, value
    job_entry = entries + 8 * ENTRY_WORDS * (number * VERSIONS + version + 1)
    if word(job_entry, JOB_STATE) == WRITTEN:
        return job_entry, value + word(job_entry, VALUE_SKIP)
    if word(job_entry, JOB_STATE) == UNWANTED:
        return np.int64(_LEFT_OUT), value
    store_64(job + 8 * NUMBER, number)
    store_64(job + 8 * JOB_VERSION, version)
    return refused if word(job_entry, JOB_STATE) == JOB_CAREFUL else np.int64(_UNFILLED), value


@plain
def _plain_content(job: Int, walk: Int, out: Int, room: Int) -> Int:
    """Key, value and headers of a record of a user's topic, in base64."""
    out = _bytes(job, AT_PLAIN_KEY, word(walk, KEY), word(walk, KEY_SIZE), out, room)
    if out >= 0:
        out = _bytes(job, AT_VALUE, word(walk, VALUE), word(walk, VALUE_SIZE), out, room)
    if out < 0 or room - out < word(job, RECORD_ROOM):
        return min(out, np.int64(NO_ROOM))
    out = _text(job, AT_HEADERS, out)
    p, end = word(walk, WALK_HEADERS), word(walk, WALK_HEADERS) + (1 << 40)
    for index in range(word(walk, HEADERS_COUNT)):
        size, p = read_size(p, end)
        if LONGEST_ESCAPE * size + word(job, RECORD_ROOM) > room - out:
            return np.int64(NO_ROOM)
        out = _text(job, AT_NEXT_HEADER if index else AT_HEADER_KEY, out)
        out = put_text(out, p, size)
        if out < 0:
            return np.int64(REFUSED)
        size, p = read_size(p + size, end)
        out = _bytes(job, AT_HEADER_VALUE, p, size, out, room)
        if out < 0:
            return out
        p += max(size, np.int64(0))
        store_8(out, np.int64(125))
        out += 1
    if room - out < word(job, RECORD_ROOM):
        return np.int64(NO_ROOM)
    return _text(job, AT_RECORD_END, out)


@plain
def _bytes(job: Int, text: Int, p: Int, size: Int, out: Int, room: Int) -> Int:
    if 4 * size // 3 + word(job, RECORD_ROOM) + NUMBER_ROOM > room - out:
        return np.int64(NO_ROOM)
    out = _text(job, text, out)
    return put_base64(out, p, size) if size >= 0 else _text(job, JOB_NULL, out)


@cache
def lines_kernel() -> Callable[[int], int]:
    """Takes the address of a job."""
    made: Callable[[int], int] = entry("int64(int64)")(_run)
    return made


def _run(job: Any) -> Any:
    return write_lines(job)
