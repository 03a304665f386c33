"""Builds the column `_unknown_tags` from the tags that the kernel noted: path, number and size of each."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.columnar.buffers import Buffers
from kafkascope.columnar.operations import (
    TOP,
    UNKNOWN_GROUP,
    UNKNOWN_INDEX,
    UNKNOWN_PLACE,
    UNKNOWN_ROW,
    UNKNOWN_SIZE,
    UNKNOWN_TAG,
    VALUES,
)
from kafkascope.columnar.tables import UNKNOWN_TYPE

_Ints = npt.NDArray[np.int32]


def unknown_tags(buffers: Buffers) -> pa.Array | None:
    """Null if a frame has none; no column if no frame has one."""
    if not buffers.program.open_at or not buffers.rows(UNKNOWN_GROUP):
        return None
    rows = buffers.rows(TOP)
    tags_of_row = np.bincount(_noted(buffers, UNKNOWN_ROW), minlength=rows)
    ends = np.zeros(rows + 1, np.int32)
    np.cumsum(tags_of_row, out=ends[1:])
    tags = buffers.view(UNKNOWN_TAG, VALUES, np.int64).copy()
    children = [_paths(buffers), pa.array(tags), pa.array(_noted(buffers, UNKNOWN_SIZE))]
    tag = pa.StructArray.from_arrays(children, fields=list(UNKNOWN_TYPE.value_type))
    valid = pa.py_buffer(np.packbits(tags_of_row > 0, bitorder="little"))
    return pa.Array.from_buffers(UNKNOWN_TYPE, rows, [valid, pa.py_buffer(ends)], children=[tag])


def _paths(buffers: Buffers) -> pa.StringArray:
    """`topics[1].partitions[3]`: a place has the text around the numbers of the elements."""
    place = _noted(buffers, UNKNOWN_PLACE)
    texts, order = [], []
    for number in np.unique(place).tolist():
        at = np.flatnonzero(place == number)
        first, *rest = buffers.program.places[number]
        text = pa.repeat(first, len(at))
        for level, piece in enumerate(rest):
            index = pa.array(_noted(buffers, UNKNOWN_INDEX + level)[at]).cast(pa.string())
            text = pc.binary_join_element_wise(text, index, piece, "")
        texts.append(text)
        order.append(at)
    return pa.concat_arrays(texts).take(pa.array(np.argsort(np.concatenate(order))))


def _noted(buffers: Buffers, slot: int) -> _Ints:
    return buffers.view(slot, VALUES, np.int32).copy()
