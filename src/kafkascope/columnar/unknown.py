"""Noted unknown tags in, the column `_unknown_tags` out: path, number and size of each, null where a frame has none."""

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from kafkascope.columnar import buffers as buffers_module
from kafkascope.columnar.buffers import Buffers
from kafkascope.columnar.kernel.entry import NOTES, NOTES_SIZE, kernel
from kafkascope.columnar.kernel.notes import LINE
from kafkascope.columnar.operations import TOP, UNKNOWN_GROUP, Program
from kafkascope.columnar.tables import UNKNOWN_TYPE


def unknown_tags(buffers: Buffers) -> pa.Array | None:
    """None where there is none at all."""
    count = buffers.rows(UNKNOWN_GROUP) if buffers.program.open_at else 0
    if not count:
        return None
    rows = buffers.rows(TOP)
    places, _ = _places(buffers.program)
    at = buffers.job.address, places, buffers.addresses.ctypes.data
    text, _ = kernel()(NOTES_SIZE, *at, 0, 0, 0, 0)
    sizes = [-(-rows // 8), 4 * (rows + 1), 4 * (count + 1), 8 * count, 4 * count, text]
    made = buffers_module.allocate(sum(-(-size // LINE) * LINE for size in sizes))
    kernel()(NOTES, *at, made.address, 0, 0, 0)
    parts = []
    start = 0
    for size in sizes:
        parts.append(made.slice(start, size))
        start += -(-size // LINE) * LINE
    valid, offsets, path_offsets, tags, tag_sizes, paths = parts
    children = [
        pa.Array.from_buffers(pa.string(), count, [None, path_offsets, paths]),
        pa.Array.from_buffers(pa.int64(), count, [None, tags]),
        pa.Array.from_buffers(pa.int32(), count, [None, tag_sizes]),
    ]
    tag = pa.Array.from_buffers(UNKNOWN_TYPE.value_type, count, [None], children=children)
    return pa.Array.from_buffers(UNKNOWN_TYPE, rows, [valid, offsets], children=[tag])


@lru_cache(maxsize=2048)
def _places(program: Program) -> tuple[int, Any]:
    """The address of the words that `write_notes` wants, and what is to be kept alive for it."""
    texts = [[piece.encode() for piece in place] for place in program.places]
    joined = np.frombuffer(b"".join(piece for place in texts for piece in place) + b"\0", dtype=np.uint8)
    words = np.zeros(len(texts) + sum(1 + 2 * len(place) for place in texts), dtype=np.int64)
    at, text = len(texts), int(joined.ctypes.data)
    for number, place in enumerate(texts):
        words[number] = words.ctypes.data + 8 * at
        words[at] = len(place)
        for index, piece in enumerate(place):
            words[at + 1 + 2 * index : at + 3 + 2 * index] = text, len(piece)
            text += len(piece)
        at += 1 + 2 * len(place)
    return int(words.ctypes.data), (words, joined)
