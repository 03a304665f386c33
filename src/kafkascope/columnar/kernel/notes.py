"""Noted unknown tags in, the buffers of their Arrow column out: which frames have some, where those of a frame end, the
paths' offsets, numbers, sizes, the paths' text; each at a multiple of `LINE` bytes."""

import numpy as np

from kafkascope.columnar.compiling.jit import inline, plain
from kafkascope.columnar.kernel.arguments import COUNTED, NOTED_TAGS
from kafkascope.columnar.kernel.memory import copy_bytes, load_raw32, load_u8, store_8, store_32, word
from kafkascope.columnar.kernel.signatures import Int
from kafkascope.columnar.operations import UNKNOWN_INDEX, UNKNOWN_PLACE, UNKNOWN_ROW, UNKNOWN_SIZE, UNKNOWN_TAG

LINE = 64


@plain
def notes_size(job: Int, places: Int, addresses: Int) -> Int:
    """Bytes of all paths."""
    size = np.int64(0)
    for note in range(word(job, NOTED_TAGS)):
        pieces = word(places, load_raw32(_column(addresses, UNKNOWN_PLACE) + 4 * note))
        for number in range(word(pieces, 0)):
            if number:
                size += _digits(load_raw32(_column(addresses, UNKNOWN_INDEX + number - 1) + 4 * note))
            size += word(pieces, 2 + 2 * number)
    return size


@plain
def write_notes(job: Int, places: Int, addresses: Int, target: Int) -> Int:
    """`addresses` are those of the buffers by place. Of a place `places` says how many pieces its path has, and address
    and length of each."""
    notes, rows = word(job, NOTED_TAGS), word(word(job, COUNTED), 0)
    valid, offsets = target, target + _lines((rows + 7) >> 3)
    paths = offsets + _lines(4 * (rows + 1))
    tags = paths + _lines(4 * (notes + 1))
    sizes = tags + _lines(8 * notes)
    text = sizes + _lines(4 * notes)
    copy_bytes(tags, _column(addresses, UNKNOWN_TAG), 8 * notes)
    copy_bytes(sizes, _column(addresses, UNKNOWN_SIZE), 4 * notes)
    note = used = np.int64(0)
    store_32(offsets, note)
    store_32(paths, used)
    for index in range((rows + 7) >> 3):
        store_8(valid + index, np.int64(0))
    for row in range(rows):
        while note < notes and load_raw32(_column(addresses, UNKNOWN_ROW) + 4 * note) == row:
            store_8(valid + (row >> 3), load_u8(valid + (row >> 3)) | np.int64(1) << (row & 7))
            used = _write_path(places, addresses, note, text, used)
            note += 1
            store_32(paths + 4 * note, used)
        store_32(offsets + 4 * row + 4, note)
    return used


@inline
def _write_path(places: Int, addresses: Int, note: Int, text: Int, used: Int) -> Int:
    pieces = word(places, load_raw32(_column(addresses, UNKNOWN_PLACE) + 4 * note))
    for number in range(word(pieces, 0)):
        if number:
            value = load_raw32(_column(addresses, UNKNOWN_INDEX + number - 1) + 4 * note)
            digits = _digits(value)
            for back in range(digits):
                store_8(text + used + digits - 1 - back, 48 + value % 10)
                value //= 10
            used += digits
        copy_bytes(text + used, word(pieces, 1 + 2 * number), word(pieces, 2 + 2 * number))
        used += word(pieces, 2 + 2 * number)
    return used


@inline
def _column(addresses: Int, slot: Int) -> Int:
    return word(addresses, 3 * slot)


@inline
def _digits(value: Int) -> Int:
    digits = np.int64(1)
    above = np.int64(10)
    while value >= above:
        digits += 1
        above *= 10
    return digits


@inline
def _lines(size: Int) -> Int:
    return (size + (LINE - 1)) & -LINE
