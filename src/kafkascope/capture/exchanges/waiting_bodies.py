"""Collects bodies until they are decoded: those of a batch, and those of each message and version so far.

Each message has memory of its own, so that a rare one that waits for long keeps no memory of others alive."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.capture.base.arrow_arrays import numbers
from kafkascope.capture.exchanges.body_places import BodyPlaces, Kind
from kafkascope.capture.exchanges.record_sizes import Sizes

# If bodies or their keys are larger than this, each message gets memory of its own.
SHARED_BYTES, SHARED_KEY_BYTES = 1 << 20, 512 << 10
# A body of this size becomes a table of its own.
LONG_BYTES = 8 << 20
# Bytes of other keys that a table may keep alive: copying takes longer than reading a few rows.
MOST_OTHER_KEY_BYTES = 32 << 10

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


@dataclass(eq=False)
class Block:
    """Bodies sorted by message and version, see `BodyPlaces`. `content` is one buffer per kind, or a single one if they
    share memory. Body n has the key number `order[n]` of `unsorted`."""

    kinds: Sequence[Kind]
    starts: Sequence[int]
    unsorted: pa.RecordBatch
    order: Ints
    ends: Ints
    content: Sequence[Bytes]
    shared: bool
    record_sizes: Sequence[Sizes] = ()  # of each body, if the recording has only the sizes of records

    @property
    def size(self) -> int:
        return int(self.ends[-1])

    @cached_property
    def keys(self) -> pa.RecordBatch:
        return self.unsorted.take(numbers(self.order, pa.int64()))

    def part(self, index: int) -> "BodyPart":
        start, end = self.starts[index : index + 2]
        ends = self.ends[start : end + 1]
        content = self.content[0][ends[0] : ends[-1]].copy() if self.shared else self.content[index]
        return BodyPart(self.keys.slice(start, end - start), np.diff(ends), content)


@dataclass(frozen=True, slots=True, eq=False)
class BodyPart:
    """Bodies of one message and version, side by side."""

    keys: pa.RecordBatch
    sizes: Ints
    content: Bytes


def copied(keys: pa.RecordBatch, places: BodyPlaces, record_sizes: Sequence[Sizes] = ()) -> Block:
    """The bodies at these places; `record_sizes` are those of each row of the batch."""
    ends, starts = places.ends, places.starts
    body_record_sizes = [record_sizes[row] for row in places.rows.tolist()] if record_sizes else []
    shared = bool(ends[-1] <= SHARED_BYTES and keys.nbytes <= SHARED_KEY_BYTES)
    bounds = [0, starts[-1]] if shared else starts
    sizes = np.diff(ends)
    content = [_gathered(places, sizes, a, b) for a, b in pairwise(bounds)]
    return Block(places.kinds, starts, keys, places.exchanges, ends, content, shared, body_record_sizes)


def _gathered(places: BodyPlaces, sizes: Ints, start: int, end: int) -> Bytes:
    """A single long body isn't copied: it is decoded at once."""
    if end - start == 1 and sizes[start] >= LONG_BYTES:
        return places.content.view(int(places.places[start]), int(sizes[start]))
    return places.content.gathered(places.places[start:end], sizes[start:end])


def _ends(sizes: Ints) -> Ints:
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    return ends


@dataclass(slots=True)
class Group:
    """The bodies of one message and version, from one kind of recording."""

    parts: list[BodyPart] = field(default_factory=list)
    record_sizes: list[Sizes] = field(default_factory=list)
    rows: int = 0
    size: int = 0

    def put(self, part: BodyPart) -> None:
        self.parts.append(part)
        self.rows += len(part.sizes)
        self.size += len(part.content)

    def bodies(self) -> pa.LargeBinaryArray:
        buffers = [None, pa.py_buffer(_ends(self._sizes())), pa.py_buffer(self._content())]
        return pa.Array.from_buffers(pa.large_binary(), self.rows, buffers)

    def keys(self) -> pa.RecordBatch:
        keys = [part.keys for part in self.parts]
        return pa.concat_batches(keys) if len(keys) > 1 else own_keys(keys[0])

    def own(self) -> None:
        """Copies what it holds, so that it keeps no memory of others alive."""
        content = np.concatenate([part.content for part in self.parts])
        self.parts = [BodyPart(self.keys(), self._sizes(), content)]

    def _sizes(self) -> Ints:
        return np.concatenate([part.sizes for part in self.parts])

    def _content(self) -> Bytes:
        first = self.parts[0].content
        return first if len(self.parts) == 1 else np.concatenate([part.content for part in self.parts])


def own_keys(keys: pa.RecordBatch) -> pa.RecordBatch:
    """A copy of the keys, if they are slices that keep much larger batches alive."""
    if keys.get_total_buffer_size() > keys.nbytes + MOST_OTHER_KEY_BYTES:
        return keys.take(numbers(np.arange(len(keys)), pa.int64()))
    return keys
