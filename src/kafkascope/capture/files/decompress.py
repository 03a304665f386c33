"""The bytes of a file in, unpacked where it is gzip, zstd, xz or lz4 (told by its first bytes): streaming, with flat
memory. A file that is cut or broken ends early, after all that could be unpacked, and `problem` says why."""

import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa

from kafkascope.capture.files.blockwise import LZ4_MAGIC, Cut, Taker, first_magic, mended
from kafkascope.capture.formats import COMPRESSION_START_BYTES, compression_starting
from kafkascope.limits import MAX_WINDOW_BYTES

# Arrow's decoders give nothing of the read in which they fail: what a broken block can take with it.
_STEP = 65_536
_LARGE_STEP = 1 << 20
# Beside the dictionary liblzma takes 64 KiB and a little more.
_TOO_WIDE_FOR_XZ = "Memory usage limit exceeded"
_XZ_MEMORY = MAX_WINDOW_BYTES + (1 << 20)

ReadInto = Callable[[memoryview], int]


class Fills(Protocol):
    """What `Source` is to this module."""

    live: bool

    def fill(self, view: memoryview) -> int: ...


class Packed:
    """The file as it is: `pull` gives what was looked at first, then the rest."""

    def __init__(self, source: Fills) -> None:
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


class Ending:
    """Why the data ended too early. Decoders hold this and never the reader that holds them: Python's collector doesn't
    see through Arrow's objects, and would never free such a cycle."""

    def __init__(self) -> None:
        self.form: str | None = None
        self.problem: str | None = None

    def note(self, why: str) -> None:
        self.problem = f"the {self.form} data {why}"


class Unpacked:
    """`fill` as `Source.fill`."""

    def __init__(self, source: Fills) -> None:
        self._source = source
        self._packed = Packed(source)
        self._ending = Ending()
        self._read_into: ReadInto | None = None
        self._known = False
        self._ended = False

    @property
    def form(self) -> str | None:
        """The compression, or None."""
        return self._ending.form

    @property
    def problem(self) -> str | None:
        return self._ending.problem

    def is_plain(self) -> bool:
        if not self._known:
            self._begin()
        return self._ending.form is None

    def fill(self, view: memoryview) -> int:
        if self.is_plain():
            held = self._packed.pull(len(view)) if self._packed.held else b""
            if not held:
                return self._source.fill(view)
            view[: len(held)] = held
            # What a pipe has not delivered yet is not waited for.
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
            self._ending.note("is cut")
            count = 0
        except (OSError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
            said = " ".join(str(error).split())
            wide = f"needs a dictionary of more than {MAX_WINDOW_BYTES} bytes; pack it again"
            self._ending.note(wide if said == _TOO_WIDE_FOR_XZ else f"is broken ({said})")
            count = 0
        if count == 0:
            self._ended = True
            self._read_into = None  # a decoder's memory is not kept until the last reference goes
        return count

    def _begin(self) -> None:
        self._known = True
        packing = compression_starting(self._packed.look(COMPRESSION_START_BYTES))
        if packing is not None:
            self._ending.form = packing.name
            self._read_into = packing.load()(self._packed, self._ending)


def open_gzip(packed: Packed, _: Ending) -> ReadInto:
    """What comes back unpacks into a view. Why the data ends too early it raises, or notes in `Ending`."""
    file = gzip.GzipFile(fileobj=_File(packed.pull))

    def read_into(view: memoryview) -> int:
        data = file.read1(min(len(view), _LARGE_STEP))
        view[: len(data)] = data
        return len(data)

    return read_into


def open_blocks(packed: Packed, ending: Ending) -> ReadInto:
    """zstd and lz4 have the same skippable frames: which of them it is, the first other frame says."""
    taker = Taker(packed.pull)
    try:
        ending.form = "lz4" if first_magic(taker) == LZ4_MAGIC else "zstd"
    except Cut:
        ending.form = "zstd or lz4"
        ending.note("is cut")
        return lambda _: 0
    blocks = mended(taker, ending.note)
    held = memoryview(b"")

    def read(size: int) -> bytes:
        nonlocal held
        parts: list[memoryview] = []
        # Small frames by the thousand go to the decoder together, but for those of a pipe, which may end for now.
        while size > 0 and not (parts and packed.source.live):
            if not held and not (held := memoryview(next(blocks, b""))):
                break
            parts.append(held[:size])
            held = held[size:]
            size -= len(parts[-1])
        return b"".join(parts)

    stream = pa.CompressedInputStream(pa.PythonFile(_File(read), mode="r"), ending.form)

    def read_into(view: memoryview) -> int:
        return int(stream.readinto(view[:_STEP]))

    return read_into


class UnpackedFile(io.RawIOBase):
    """The same as a file to read from."""

    def __init__(self, unpacked: Unpacked) -> None:
        self._unpacked = unpacked

    def readinto(self, view: Any) -> int:
        return self._unpacked.fill(memoryview(view))

    def readable(self) -> bool:
        return True


class _File(io.RawIOBase):
    """What the decoders of others want to read from: reads may be short, and an empty one is the end."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._pull = read

    def read(self, size: int = -1) -> bytes:
        return self._pull(size if size > 0 else _STEP)

    def readable(self) -> bool:
        return True


def open_xz(source: Packed, _: Ending) -> ReadInto:
    """Streams one behind the other. Python's own file of them takes the zeros that may stand between for a cut."""
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
