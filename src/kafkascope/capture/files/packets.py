"""Reads pcap and pcapng files, plain or compressed, as batches of whole packets. Only a file that isn't a recording at
all is an `InputError`; anything else that is wrong with it is a `Problem` next to the packets that could be read."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Protocol

from kafkascope.capture.base.buffer_pool import BufferPool
from kafkascope.capture.base.flow import Bytes, Packets
from kafkascope.capture.files.decompress import Decompressor
from kafkascope.capture.files.packet_rows import PacketRows
from kafkascope.capture.files.source import FollowPolicy, Input, Source
from kafkascope.capture.files.unread_formats import unread_format
from kafkascope.capture.formats import (
    CAPTURE,
    CAPTURE_NAMES,
    FORMAT_START_BYTES,
    compressions_or_plain,
    format_starting,
)
from kafkascope.errors import InputError

# Thousands of packets per batch: every batch costs some milliseconds, whatever its size.
CHUNK_BYTES = 8 << 20
# The first batches are smaller, so that the first exchanges come at once; each is this many times the one before.
FIRST_BATCH_BYTES = 1 << 20
_GROWTH = 2
# Packets are searched in this many bytes at a time, while they are in the processor's cache.
STEP_BYTES = 512 << 10
# Shared by all files: clearing fresh memory would take the longest part of reading a small one.
_FIRST_BUFFERS = BufferPool()


class PacketReader(Protocol):
    """The reader of a capture format, which fills the `PacketRows` it is made with."""

    def index(self, data: Bytes, position: int, base: int, final: bool) -> int:
        """Adds the packets that are whole in `data` from `position` on, and returns where the next one begins. `base`
        is the file's offset of `data`; `final` means that no more comes."""
        ...


def read_packets(
    source: Input,
    *,
    follow: bool = False,
    deadline: float | None = None,
    pause: Callable[[float], None] = time.sleep,
    waiting: FollowPolicy | None = None,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[Packets]:
    """`source` is a path, `-` for standard input, or an open binary file. A pipe's packets come as it delivers them.
    `follow` continues at the end of a growing file until `deadline` (of `time.monotonic`), or forever; `pause` is how
    it waits. `waiting` is the same as a policy, which also records why following ended."""
    raw = Source(source, FollowPolicy(deadline, pause) if follow else waiting)
    with closing(raw):
        yield from _batches(Decompressor(raw), raw, chunk_bytes)


def _batches(unpacked: Decompressor, source: Source, chunk_bytes: int) -> Iterator[Packets]:
    rows = PacketRows()
    reader: PacketReader | None = None
    pool = BufferPool()
    buffer = _first_buffer(unpacked, source, min(chunk_bytes, FIRST_BATCH_BYTES))
    filled = position = base = 0
    while True:
        if filled == len(buffer):
            # Packets that were handed out stay in the old buffer: only unread bytes move to the new one.
            left = filled - position
            larger = pool.take(max(min(chunk_bytes, _GROWTH * len(buffer)), 2 * left))
            larger[:left] = buffer[position:filled]
            buffer, base, filled, position = larger, base + position, left, 0
        most = len(buffer) if source.live else filled + STEP_BYTES
        count = unpacked.fill(memoryview(buffer)[filled:most])  # type: ignore[arg-type]
        filled += count
        final = count == 0
        data = buffer[:filled]
        try:
            if reader is None:
                reader = _reader(data, rows, final)
            if reader is not None:
                rows.make_room(len(buffer))
                position = reader.index(data, position, base, final)
        except InputError as error:
            # A fault of the compression is the cause of any other.
            inside = f" (inside {unpacked.form})" if unpacked.form else ""
            raise InputError(f"{source.name}: {unpacked.problem or f'{error}{inside}'}") from None
        if final and unpacked.problem:
            rows.problems.add("compression", unpacked.problem, base + filled)
        if (filled == len(buffer) or final or source.live) and (packets := rows.take(data, base)):
            yield packets
        if final:
            return


def _first_buffer(unpacked: Decompressor, source: Source, size: int) -> Bytes:
    """For a small file, one byte more than the file has: there is less to index, and the file still ends within this
    buffer."""
    if 0 < source.left < size and unpacked.is_plain():
        return _FIRST_BUFFERS.take(size)[: source.left + 1]
    return _FIRST_BUFFERS.take(size)[:size]


def _reader(data: Bytes, rows: PacketRows, final: bool) -> PacketReader | None:
    """Chosen by the first bytes, never by a name; None until there are enough of them."""
    if len(data) < FORMAT_START_BYTES and not final:
        return None
    head = data[:FORMAT_START_BYTES].tobytes()
    form = format_starting(head)
    if form is not None and form.kind == CAPTURE:
        reader: PacketReader = form.load()(rows)
        return reader
    if not head:
        raise InputError("it is empty")
    looks = data[:512].tobytes()
    if named := unread_format(looks):
        raise InputError(f"this is {named}")
    kind = (
        "this is text"
        if all(9 <= byte <= 13 or 32 <= byte <= 126 for byte in looks)
        else "its first bytes match neither"
    )
    raise InputError(f"not a recording: {' or '.join(CAPTURE_NAMES)} is read, {compressions_or_plain()}, and {kind}")
