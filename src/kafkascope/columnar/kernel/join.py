"""Packed tables of one message in, one for each of its versions, and their keys: one record batch out, row behind row.

What a version lacks is null in its rows. In front of the message's own columns stand a text, where there is one, and a
number of two bytes, for each row.
"""

import numpy as np

from kafkascope.columnar.compiling.jit import inline, plain
from kafkascope.columnar.kernel.arguments import BUFFERS_AT, FIELDS, FIELDS_COUNT, FORM_SIZE, NODES_AT
from kafkascope.columnar.kernel.memory import copy_bytes, load_raw32, load_u8, store_8, store_32, store_64, word
from kafkascope.columnar.kernel.pack import (
    BITS_FIELD,
    FIELD,
    STRUCT_FIELD,
    TEXT_FIELD,
    clear_last_line,
    lines,
    put_entry,
)
from kafkascope.columnar.kernel.signatures import Int

# What the joined table is written by: its form, see `form`.
FORM, SIZE, NODES, BUFFERS, LENGTH, BODY_LENGTH = range(6)
FORM_WORDS = 6
# What stands in front: addresses of the texts' offsets, 0 where there are none, of their bytes, of which text each row
# has, and of the numbers.
TEXT_OFFSETS, TEXT_DATA, TEXT_OF_ROW, ROW_NUMBERS = range(4)
FRONT = 4


@plain
def joined_size(job: Int, parts: Int, count: Int, whole: Int, front: Int, first: Int, rows: Int) -> Int:
    """Bytes of the batch, or a few more. `parts` are the addresses of so many packed tables, `job` that of one."""
    size = word(whole, SIZE) + lines(2 * rows)
    if word(front, TEXT_OFFSETS):
        size += lines(4 * (rows + 1)) + lines(_text_size(front, first, rows))
    entry = np.int64(0)
    for index in range(word(job, FIELDS_COUNT)):
        kind = word(word(job, FIELDS) + 8 * FIELD * index, 0) & 3
        buffers = 1 if kind == STRUCT_FIELD else 3 if kind == TEXT_FIELD else 2
        for buffer in range(buffers):
            used = np.int64(0)
            for part in range(count):
                used += word(_buffer(job, word(parts, part), entry + buffer), 1) + 8
                # Bits of a version without nulls are not there, and may be now.
                used += word(_node(job, word(parts, part), index), 0) >> 3
            size += lines(used)
        entry += buffers
    return size


@plain
def join(job: Int, parts: Int, count: Int, whole: Int, front: Int, first: Int, rows: Int, target: Int) -> Int:
    """Writes it to `target`; how many bytes of the room there it took."""
    copy_bytes(target, word(whole, FORM), word(whole, SIZE))
    body = target + word(whole, SIZE)
    node, entry = target + word(whole, NODES), target + word(whole, BUFFERS)
    at = np.int64(0)
    if word(front, TEXT_OFFSETS):
        node = put_entry(node, rows, np.int64(0))
        entry = put_entry(entry, at, np.int64(0))
        size = _join_texts(front, first, rows, body + at)
        entry = put_entry(entry, at, 4 * (rows + 1))
        at += lines(4 * (rows + 1))
        entry = put_entry(entry, at, size)
        at += lines(size)
    node = put_entry(node, rows, np.int64(0))
    entry = put_entry(entry, at, np.int64(0))
    clear_last_line(body + at, 2 * rows)
    copy_bytes(body + at, word(front, ROW_NUMBERS) + 2 * first, 2 * rows)
    entry = put_entry(entry, at, 2 * rows)
    at += lines(2 * rows)
    source = np.int64(0)
    for index in range(word(job, FIELDS_COUNT)):
        field = word(job, FIELDS) + 8 * FIELD * index
        kind, width, more = word(field, 0) & 3, word(field, 2), word(field, 3)
        total, nulls = np.int64(0), np.int64(0)
        for part in range(count):
            told = _node(job, word(parts, part), index)
            total += word(told, 0)
            nulls += word(told, 1)
        node = put_entry(node, total, nulls)
        size = (total + 7) >> 3 if nulls else np.int64(0)
        if nulls:
            _join_bits(job, parts, count, index, source, body + at, size, True)
        entry = put_entry(entry, at, size)
        at += lines(size)
        source += 1
        if kind == STRUCT_FIELD:
            continue
        if kind == BITS_FIELD:
            size = (total + 7) >> 3
            _join_bits(job, parts, count, index, source, body + at, size, False)
        elif more:
            size = 4 * (total + 1)
            _join_offsets(job, parts, count, index, source, body + at, size)
        else:
            size = total * width
            _join_bytes(job, parts, count, source, body + at, size)
        entry = put_entry(entry, at, size)
        at += lines(size)
        source += 1
        if kind == TEXT_FIELD:
            size = np.int64(0)
            for part in range(count):
                size += word(_buffer(job, word(parts, part), source), 1)
            _join_bytes(job, parts, count, source, body + at, size)
            entry = put_entry(entry, at, size)
            at += lines(size)
            source += 1
    store_64(target + word(whole, LENGTH), rows)
    store_64(target + word(whole, BODY_LENGTH), at)
    return word(whole, SIZE) + at


@plain
def _join_bytes(job: Int, parts: Int, count: Int, buffer: Int, target: Int, size: Int) -> None:
    clear_last_line(target, size)
    for part in range(count):
        told = _buffer(job, word(parts, part), buffer)
        copy_bytes(target, word(parts, part) + word(job, FORM_SIZE) + word(told, 0), word(told, 1))
        target += word(told, 1)


@plain
def _join_offsets(job: Int, parts: Int, count: Int, field: Int, buffer: Int, target: Int, size: Int) -> None:
    """Those of a version go on where those before it end."""
    clear_last_line(target, size)
    before = np.int64(0)
    store_32(target, before)
    target += 4
    for part in range(count):
        source = word(parts, part) + word(job, FORM_SIZE) + word(_buffer(job, word(parts, part), buffer), 0)
        rows = word(_node(job, word(parts, part), field), 0)
        for row in range(rows):
            store_32(target + 4 * row, load_raw32(source + 4 * row + 4) + before)
        target += 4 * rows
        before += load_raw32(source + 4 * rows)


@plain
def _join_bits(job: Int, parts: Int, count: Int, field: Int, buffer: Int, target: Int, size: Int, valid: Int) -> None:
    """Bits that are left out say that nothing is null."""
    clear_last_line(target, size)
    for index in range(size):
        store_8(target + index, np.int64(0))
    at = np.int64(0)
    for part in range(count):
        told = _node(job, word(parts, part), field)
        source = word(parts, part) + word(job, FORM_SIZE) + word(_buffer(job, word(parts, part), buffer), 0)
        every = valid and word(told, 1) == 0
        for row in range(word(told, 0)):
            bit = np.int64(1) if every else load_u8(source + (row >> 3)) >> (row & 7) & 1
            store_8(target + (at >> 3), load_u8(target + (at >> 3)) | bit << (at & 7))
            at += 1


@inline
def _node(job: Int, part: Int, field: Int) -> Int:
    return part + word(job, NODES_AT) + 16 * field


@inline
def _buffer(job: Int, part: Int, buffer: Int) -> Int:
    return part + word(job, BUFFERS_AT) + 16 * buffer


@plain
def _text_size(front: Int, first: Int, rows: Int) -> Int:
    size = np.int64(0)
    for row in range(first, first + rows):
        offsets = word(front, TEXT_OFFSETS) + 4 * word(word(front, TEXT_OF_ROW), row)
        size += load_raw32(offsets + 4) - load_raw32(offsets)
    return size


@plain
def _join_texts(front: Int, first: Int, rows: Int, target: Int) -> Int:
    """Their offsets, and behind these on a line of its own the bytes, whose number comes back."""
    clear_last_line(target, 4 * (rows + 1))
    data, size = target + lines(4 * (rows + 1)), np.int64(0)
    clear_last_line(data, _text_size(front, first, rows))
    store_32(target, size)
    for row in range(rows):
        offsets = word(front, TEXT_OFFSETS) + 4 * word(word(front, TEXT_OF_ROW), first + row)
        start = load_raw32(offsets)
        length = load_raw32(offsets + 4) - start
        copy_bytes(data + size, word(front, TEXT_DATA) + start, length)
        size += length
        store_32(target + 4 * row + 4, size)
    return size
