"""Decompresses gzip, zstd, xz and lz4 files, recognized by their first bytes, as a stream in flat memory. A file that
is cut or broken ends early, after everything that could be decompressed, and `problem` has the reason."""

import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa

from kafkascope.capture.files.blockwise import LZ4_MAGIC, ByteReader, TruncatedData, first_magic, repaired_frames
from kafkascope.capture.formats import COMPRESSION_START_BYTES, compression_starting
from kafkascope.limits import MAX_WINDOW_BYTES

# Arrow's decoders return nothing of a read that fails, so a broken block costs up to this many bytes.
_STEP = 65_536
_LARGE_STEP = 1 << 20
# Besides the dictionary, liblzma takes slightly more than 64 KiB.
_TOO_WIDE_FOR_XZ = "Memory usage limit exceeded"
_XZ_MEMORY = MAX_WINDOW_BYTES + (1 << 20)

ReadInto = Callable[[memoryview], int]


class ByteSource(Protocol):
    """The part of `Source` that this module uses."""

    live: bool

    def fill(self, view: memoryview) -> int: ...


class PeekableSource:
    """The compressed file: `pull` returns the bytes that `look` has read, then the rest."""

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.held = b""

    def look(self, count: int) -> bytes:
        while len(self.held) < count:
            piece = bytearray(count - len(self.held))
            got = self.source.fill(memoryview(piece))
            if got == 0:
                break
            self.held += piece[:got]
        return self.held

    def pull(self, size: int) -> bytes:
        if self.held:
            taken, self.held = self.held[:size], self.held[size:]
            return taken
        piece = bytearray(size)
        return bytes(memoryview(piece)[: self.source.fill(memoryview(piece))])


class CompressionStatus:
    """The compression, and why the data ended too early. Decoders hold this object and never the reader that holds
    them: Python's collector doesn't see through Arrow's objects, and would never free such a cycle."""

    def __init__(self) -> None:
        self.form: str | None = None
        self.problem: str | None = None

    def note(self, why: str) -> None:
        self.problem = f"the {self.form} data {why}"


class Decompressor:
    """Decompresses a source. `fill` works like `Source.fill`."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._packed = PeekableSource(source)
        self._status = CompressionStatus()
        self._read_into: ReadInto | None = None
        self._known = False
        self._ended = False

    @property
    def form(self) -> str | None:
        """The compression, or None."""
        return self._status.form

    @property
    def problem(self) -> str | None:
        return self._status.problem

    def is_plain(self) -> bool:
        if not self._known:
            self._begin()
        return self._status.form is None

    def fill(self, view: memoryview) -> int:
        if self.is_plain():
            held = self._packed.pull(len(view)) if self._packed.held else b""
            if not held:
                return self._source.fill(view)
            view[: len(held)] = held
            # Doesn't wait for what a pipe hasn't delivered yet.
            return len(held) if self._source.live else len(held) + self._source.fill(view[len(held) :])
        got = 0
        while got < len(view) and not self._ended:
            got += self._unpack(view[got:])
            if got and self._source.live:
                break
        return got

    def _unpack(self, view: memoryview) -> int:
        assert self._read_into is not None
        try:
            count = self._read_into(view)
        except EOFError:
            self._status.note("is cut")
            count = 0
        except (OSError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
            reason = " ".join(str(error).split())
            wide = f"needs a dictionary of more than {MAX_WINDOW_BYTES} bytes; compress it again"
            self._status.note(wide if reason == _TOO_WIDE_FOR_XZ else f"is broken ({reason})")
            count = 0
        if count == 0:
            self._ended = True
            self._read_into = None  # frees the decoder's memory now, not with the last reference
        return count

    def _begin(self) -> None:
        self._known = True
        packing = compression_starting(self._packed.look(COMPRESSION_START_BYTES))
        if packing is not None:
            self._status.form = packing.name
            self._read_into = packing.load()(self._packed, self._status)


def open_gzip(packed: PeekableSource, _: CompressionStatus) -> ReadInto:
    """A function that decompresses into a view. If the data ends too early it raises, or notes the reason in `_`."""
    file = gzip.GzipFile(fileobj=_File(packed.pull))

    def read_into(view: memoryview) -> int:
        data = file.read1(min(len(view), _LARGE_STEP))
        view[: len(data)] = data
        return len(data)

    return read_into


def open_blocks(packed: PeekableSource, status: CompressionStatus) -> ReadInto:
    """zstd and lz4 have the same skippable frames: the first other frame decides which of them it is."""
    reader = ByteReader(packed.pull)
    try:
        status.form = "lz4" if first_magic(reader) == LZ4_MAGIC else "zstd"
    except TruncatedData:
        status.form = "zstd or lz4"
        status.note("is cut")
        return lambda _: 0
    blocks = repaired_frames(reader, status.note)
    held = memoryview(b"")

    def read(size: int) -> bytes:
        nonlocal held
        parts: list[memoryview] = []
        # Thousands of small frames go to the decoder together, but those of a live source one by one.
        while size > 0 and not (parts and packed.source.live):
            if not held and not (held := memoryview(next(blocks, b""))):
                break
            parts.append(held[:size])
            held = held[size:]
            size -= len(parts[-1])
        return b"".join(parts)

    stream = pa.CompressedInputStream(pa.PythonFile(_File(read), mode="r"), status.form)

    def read_into(view: memoryview) -> int:
        return int(stream.readinto(view[:_STEP]))

    return read_into


class DecompressedFile(io.RawIOBase):
    """A `Decompressor` as a file object."""

    def __init__(self, unpacked: Decompressor) -> None:
        self._unpacked = unpacked

    def readinto(self, view: Any) -> int:
        return self._unpacked.fill(memoryview(view))

    def readable(self) -> bool:
        return True


class _File(io.RawIOBase):
    """The file object that library decoders read from: reads may be short, and an empty one is the end."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._pull = read

    def read(self, size: int = -1) -> bytes:
        return self._pull(size if size > 0 else _STEP)

    def readable(self) -> bool:
        return True


def open_xz(source: PeekableSource, _: CompressionStatus) -> ReadInto:
    """Reads concatenated streams. Python's `LZMAFile` mistakes the zero padding allowed between them for a cut."""
    decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY)

    def read_into(view: memoryview) -> int:
        nonlocal decoder
        while True:
            packed = b""
            if decoder.eof:
                packed = decoder.unused_data.lstrip(b"\0")
                while not packed:
                    if not (piece := source.pull(_STEP)):
                        return 0
                    packed = piece.lstrip(b"\0")
                decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY)
            elif decoder.needs_input and not (packed := source.pull(_STEP)):
                raise EOFError
            if data := decoder.decompress(packed, min(len(view), _LARGE_STEP)):
                view[: len(data)] = data
                return len(data)

    return read_into
