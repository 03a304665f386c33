"""The bytes of a file in, unpacked where it is gzip, zstd, xz or lz4 (told by its first bytes): streaming, with flat
memory. A file that is cut or broken ends early, after all that could be unpacked, and `problem` says why."""

import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from kafkascope.capture.mended import LZ4_MAGIC, ZSTD_MAGIC, Cut, Taker, first_magic, is_skippable, mended
from kafkascope.capture.source import Source

_GZIP_MAGIC = bytes.fromhex("1f8b")
_XZ_MAGIC = bytes.fromhex("fd377a585a00")
# Arrow's decoders give nothing of the read in which they fail: what a broken block can take with it.
_STEP = 65_536
_LARGE_STEP = 1 << 20
_LONGEST_MAGIC = 6


class Unpacked:
    """`fill` as `Source.fill`. `form` is the compression, or None."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._held = b""
        self._read_into: Callable[[memoryview], int] | None = None
        self._known = False
        self._ended = False
        self.form: str | None = None
        self.problem: str | None = None

    def is_plain(self) -> bool:
        if not self._known:
            self._begin()
        return self._read_into is None

    def fill(self, view: memoryview) -> int:
        if not self._known:
            self._begin()
        if self._read_into is None:
            if self._held:
                count = min(len(self._held), len(view))
                view[:count] = self._held[:count]
                self._held = self._held[count:]
                # What a pipe has not delivered yet is not waited for.
                return count if self._source.live else count + self._source.fill(view[count:])
            return self._source.fill(view)
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
            self._note_cut()
            count = 0
        except (OSError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
            self.problem = f"the {self.form} data is broken ({' '.join(str(error).split())})"
            count = 0
        self._ended = count == 0
        return count

    def _begin(self) -> None:
        while len(self._held) < _LONGEST_MAGIC:
            piece = bytearray(_LONGEST_MAGIC - len(self._held))
            count = self._source.fill(memoryview(piece))
            if count == 0:
                break
            self._held += piece[:count]
        self._known = True
        head = self._held
        if head.startswith(_GZIP_MAGIC):
            self._open("gzip", _one_read(gzip.GzipFile(fileobj=_File(self._pull))))
        elif head.startswith(_XZ_MAGIC):
            self._open("xz", _xz_read(self._pull))
        elif head.startswith((ZSTD_MAGIC, LZ4_MAGIC)) or is_skippable(head):
            self._open_frames()

    def _open_frames(self) -> None:
        """zstd and lz4 have the same skippable frames: which of them it is, the first other frame says."""
        taker = Taker(self._pull)
        try:
            form = "lz4" if first_magic(taker) == LZ4_MAGIC else "zstd"
        except Cut:
            self._open("zstd or lz4", lambda _: 0)
            self._note_cut()
        else:
            self._open(form, self._arrow(form, taker))

    def _open(self, form: str, read_into: Callable[[memoryview], int]) -> None:
        self.form = form
        self._read_into = read_into

    def _arrow(self, codec: str, taker: Taker) -> Callable[[memoryview], int]:
        blocks = mended(taker, self._note_cut)
        held = memoryview(b"")

        def read(size: int) -> bytes:
            nonlocal held
            if not held:
                held = memoryview(next(blocks, b""))
            piece, held = held[:size], held[size:]
            return bytes(piece)

        stream = pa.CompressedInputStream(pa.PythonFile(_File(read), mode="r"), codec)

        def read_into(view: memoryview) -> int:
            return int(stream.readinto(view[:_STEP]))

        return read_into

    def _note_cut(self) -> None:
        self.problem = f"the {self.form} data is cut"

    def _pull(self, size: int) -> bytes:
        if self._held:
            held, self._held = self._held[:size], self._held[size:]
            return held
        piece = bytearray(size)
        return bytes(piece[: self._source.fill(memoryview(piece))])


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


def _xz_read(pull: Callable[[int], bytes]) -> Callable[[memoryview], int]:
    """Streams one behind the other. Python's own file of them takes the zeros that may stand between for a cut."""
    decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ)

    def read_into(view: memoryview) -> int:
        nonlocal decoder
        while True:
            packed = b""
            if decoder.eof:
                packed = decoder.unused_data.lstrip(b"\0")
                while not packed:
                    if not (piece := pull(_STEP)):
                        return 0
                    packed = piece.lstrip(b"\0")
                decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ)
            elif decoder.needs_input and not (packed := pull(_STEP)):
                raise EOFError
            if data := decoder.decompress(packed, min(len(view), _LARGE_STEP)):
                view[: len(data)] = data
                return len(data)

    return read_into


def _one_read(file: Any) -> Callable[[memoryview], int]:
    def read_into(view: memoryview) -> int:
        data = file.read1(min(len(view), _LARGE_STEP))
        view[: len(data)] = data
        return len(data)

    return read_into
