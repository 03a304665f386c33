"""Bodies that wait to be decoded: those of one direction of a batch, and what there is of a message and version so far.

The messages of a small batch share memory. Those of a large one have their own, so that a rare one that waits for long
holds no memory of others."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.capture.arrow_arrays import numbers
from kafkascope.capture.memory_view import copy_all
from kafkascope.capture.record_sizes import Sizes

# Where bodies or their keys are more than this, each message is worth memory of its own.
SHARED_BYTES, SHARED_KEY_BYTES = 512 << 10, 256 << 10
# Keys of others that a table may hold: copying takes longer than reading a few rows.
MOST_OTHER_KEY_BYTES = 32 << 10

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Bodies:
    """Sorted by message and version. Those in one piece of memory, not large, go each from `base` and an int32 of
    `ends` to `base` and the next; `base` is 0 for others."""

    keys: pa.RecordBatch
    sizes: Ints
    ends: npt.NDArray[np.int32] | None = None
    ends_at: int = 0
    base: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Of some bodies those of one message and version, from number `start` to before `end`."""

    bodies: Bodies
    start: int
    end: int
    content: Bytes

    def keys(self) -> pa.RecordBatch:
        return self.bodies.keys.slice(self.start, self.end - self.start)

    def sizes(self) -> Ints:
        return self.bodies.sizes[self.start : self.end]


def copied(keys: pa.RecordBatch, starts: Sequence[int], addresses: Ints, sizes: Ints) -> tuple[list[Part], int]:
    """A part for each message, whose bodies begin at number `starts`; and how many bytes they share."""
    ends = _ends(sizes)
    bounds = [*starts, len(sizes)]
    places = ends[bounds].tolist()
    held = keys.nbytes
    if places[-1] <= SHARED_BYTES and held <= SHARED_KEY_BYTES:
        held += places[-1]
        whole = np.empty(places[-1], np.uint8)
        copy_all(addresses, sizes, ends[:-1] + whole.ctypes.data)
        content = [whole[start:end] for start, end in pairwise(places)]
        bodies = _small(keys, sizes, ends, whole)
    else:
        content = [np.empty(end - start, np.uint8) for start, end in pairwise(places)]
        shift = np.array([one.ctypes.data for one in content], np.int64) - places[:-1]
        copy_all(addresses, sizes, ends[:-1] + np.repeat(shift, np.diff(bounds)))
        bodies = Bodies(keys, sizes)
    return [Part(bodies, *at, own) for at, own in zip(pairwise(bounds), content, strict=True)], held


def _small(keys: pa.RecordBatch, sizes: Ints, ends: Ints, content: Bytes) -> Bodies:
    narrow = ends.astype(np.int32)
    return Bodies(keys, sizes, narrow, int(narrow.ctypes.data), int(content.ctypes.data))


def _ends(sizes: Ints) -> Ints:
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    return ends


@dataclass(slots=True)
class Group:
    """Of one message and version, from one kind of recording."""

    parts: list[Part] = field(default_factory=list)
    record_sizes: list[Sizes] = field(default_factory=list)
    rows: int = 0
    size: int = 0

    def put(self, part: Part) -> None:
        self.parts.append(part)
        self.rows += part.end - part.start
        self.size += len(part.content)

    def bodies(self) -> pa.LargeBinaryArray:
        buffers = [None, pa.py_buffer(_ends(self._sizes())), pa.py_buffer(self._content())]
        return pa.Array.from_buffers(pa.large_binary(), self.rows, buffers)

    def keys(self) -> pa.RecordBatch:
        """Slices hold all the keys of the batches that they are of: copied, they do not."""
        keys = [part.keys() for part in self.parts]
        if len(keys) > 1:
            return pa.concat_batches(keys)
        if keys[0].get_total_buffer_size() > keys[0].nbytes + MOST_OTHER_KEY_BYTES:
            return keys[0].take(numbers(np.arange(self.rows), pa.int64()))
        return keys[0]

    def small(self) -> Part | None:
        """All of it in one piece, if it is not large."""
        if self.size > SHARED_BYTES:
            return None
        if len(self.parts) > 1 or not self.parts[0].bodies.base:
            self.own()
        return self.parts[0]

    def own(self) -> None:
        """After this it holds no memory of others."""
        sizes = self._sizes()
        content = np.concatenate([part.content for part in self.parts])
        small = self.size <= SHARED_BYTES
        bodies = _small(self.keys(), sizes, _ends(sizes), content) if small else Bodies(self.keys(), sizes)
        self.parts = [Part(bodies, 0, self.rows, content)]

    def _sizes(self) -> Ints:
        return np.concatenate([part.sizes() for part in self.parts])

    def _content(self) -> Bytes:
        first = self.parts[0].content
        return first if len(self.parts) == 1 else np.concatenate([part.content for part in self.parts])
