"""Finds where the frames of an Arrow array are in memory; raises UsageError for other arrays.

Arrow itself doesn't check offsets, and the kernel relies on them: they are checked here.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.columnar.kernel.entry import CHECK, NARROW, kernel
from kafkascope.errors import UsageError

_BINARY, _LARGE_BINARY = pa.binary(), pa.large_binary()
# A frame's length is an int32 on the wire.
_MOST_BYTES = 0x7FFFFFFF
_WANTED = "expected an array of binary or large_binary"


@dataclass(frozen=True, slots=True, eq=False)
class Frames:
    """`count` frames of `size` bytes together, from number `first` of their array. Frame n goes from `base` plus the
    n-th int32 at `ends_at` to `base` plus the next. `status` is 0 before the kernel runs, and 1 after it for frames
    that the careful codec must read; whoever reads it resets it."""

    first: int
    count: int
    size: int
    base: int
    ends_at: int
    status: npt.NDArray[np.uint8]
    status_at: int


class Places:
    """Room for the ends and the status of frames, reused for the next ones if it's large enough."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.ends = np.empty(count + 1, dtype=np.int32)
        self.status = np.zeros(count, dtype=np.uint8)
        self.ends_at, self.status_at = int(self.ends.ctypes.data), int(self.status.ctypes.data)


def chunks_of(frames: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    if not isinstance(frames, (pa.Array, pa.ChunkedArray)):
        raise UsageError(f"frames are {type(frames).__name__}; {_WANTED}: pa.array(…, pa.binary())")
    # Also if there is no chunk to check.
    if frames.type != _BINARY and frames.type != _LARGE_BINARY:
        raise UsageError(f"frames are {frames.type}; {_WANTED}")
    return frames.chunks if isinstance(frames, pa.ChunkedArray) else [frames]


def frames_of(chunk: pa.Array, places: Places, most: int) -> Iterator[Frames]:
    """Portions of at most this many bytes, or of one frame; finish each before taking the next."""
    width = _width(chunk)
    count = len(chunk)
    if not count:
        return
    if count > places.count:
        places = Places(count)
    _, offsets, content = chunk.buffers()
    base, size = (content.address, content.size) if content is not None else (0, 0)
    source = offsets.address + width * chunk.offset
    first, last = kernel()(CHECK, source, width, count + 1, 0, 0, 0, 0)
    if first < 0 or last > size:
        raise UsageError("frames have offsets that aren't ascending or are outside their bytes")
    for start, end, portion in _portions(offsets, chunk, width, (first, last), most):
        from_, ends_at = base, source + width * start
        if width == 8:
            narrowed, _ = kernel()(NARROW, ends_at, end - start + 1, places.ends_at, 0, 0, 0, 0)
            from_, ends_at = base + narrowed, places.ends_at
        yield Frames(start, end - start, portion, from_, ends_at, places.status, places.status_at)


def _width(chunk: pa.Array) -> int:
    """Bytes per offset."""
    if chunk.null_count:
        nulls = "a null" if chunk.null_count == 1 else f"{chunk.null_count} nulls"
        raise UsageError(f"frames contain {nulls}; leave them out")
    return 4 if chunk.type == _BINARY else 8


def _portions(
    offsets: pa.Buffer, chunk: pa.Array, width: int, whole: tuple[int, int], most: int
) -> Iterator[tuple[int, int, int]]:
    """The first frame of each portion, its last, and its bytes."""
    count = len(chunk)
    if whole[1] - whole[0] <= most:
        yield 0, count, whole[1] - whole[0]
        return
    every = np.frombuffer(offsets, dtype=np.int32 if width == 4 else np.int64)
    ends = every[chunk.offset : chunk.offset + count + 1].astype(np.int64)
    start = 0
    while start < count:
        end = max(int(np.searchsorted(ends, ends[start] + most, side="right")) - 1, start + 1)
        size = int(ends[end] - ends[start])
        if size > _MOST_BYTES:
            raise UsageError(f"a frame of {size} bytes; Kafka's limit is {_MOST_BYTES}")
        yield start, end, size
        start = end
