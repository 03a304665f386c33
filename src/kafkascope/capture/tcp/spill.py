"""Keeps the bytes of early segments from one batch to the next, in a spill buffer. They are copied after the data of
the batch that delivers them."""

from typing import Any

from kafkascope.capture.base.checked import copy
from kafkascope.capture.base.flow import PieceKind
from kafkascope.capture.base.numbers import Number
from kafkascope.capture.tcp.reassembly_kernel import as_int64
from kafkascope.capture.tcp.stream_table import Early, Output, StreamCount, Tables
from kafkascope.columnar.compiling.jit import jit


@jit
def is_in_batch(node: Any) -> Number:
    """Whether its bytes are in the batch. A node that was freed and reused may be a gap by now, which has none."""
    return node[Early.KIND] == PieceKind.BYTES and node[Early.OFFSET] >= 0 and node[Early.AT] >= 0


@jit
def keep_early(t: Tables, data: Any) -> None:
    """Copies the bytes of early segments from the batch to the spill, which has room."""
    for index in range(t.counts[StreamCount.FRESH]):
        node = t.nodes[t.fresh[index]]
        node[Early.LISTED] = 0
        if is_in_batch(node):
            length = node[Early.END] - node[Early.OFFSET]
            copy(t.spill, t.counts[StreamCount.SPILL_USED], data, node[Early.AT], length)
            node[Early.AT] = -1 - t.counts[StreamCount.SPILL_USED]
            t.counts[StreamCount.SPILL_USED] += length
            t.counts[StreamCount.SPILL_LIVE] += length
    t.counts[StreamCount.FRESH] = 0


@jit
def move_spill(t: Tables, target: Any) -> None:
    """Copies the live bytes of the spill to `target`, without gaps."""
    used = as_int64(0)
    for index in range(len(t.nodes)):
        node = t.nodes[index]
        if node[Early.OFFSET] >= 0 and node[Early.AT] < 0:
            length = node[Early.END] - node[Early.OFFSET]
            copy(target, used, t.spill, -1 - node[Early.AT], length)
            node[Early.AT] = -1 - used
            used += length
    t.counts[StreamCount.SPILL_USED] = used


@jit
def gather(t: Tables, o: Output, target: Any, behind: int) -> None:
    """Copies the bytes of pieces from the spill to `target`, whose places count on from `behind`."""
    used = as_int64(0)
    for row in range(t.counts[StreamCount.ROWS]):
        if o.kind[row] == PieceKind.BYTES and o.start[row] < 0:
            copy(target, used, t.spill, -1 - o.start[row], o.length[row])
            o.start[row] = behind + used
            used += o.length[row]


@jit
def fresh_bytes(t: Tables) -> Number:
    total = as_int64(0)
    for index in range(t.counts[StreamCount.FRESH]):
        node = t.nodes[t.fresh[index]]
        if is_in_batch(node):
            total += node[Early.END] - node[Early.OFFSET]
    return total


@jit
def spilled_bytes(t: Tables, o: Output) -> Number:
    total = as_int64(0)
    for row in range(t.counts[StreamCount.ROWS]):
        if o.kind[row] == PieceKind.BYTES and o.start[row] < 0:
            total += o.length[row]
    return total
