"""Rewrites zstd and lz4 frames so that they may end after any block: without a content size and without a checksum of
the whole. What comes before a cut can then be decompressed, block by block."""

from collections.abc import Callable, Iterator

from kafkascope.codec.records.lz4_frame import with_right_checksum
from kafkascope.limits import MAX_WINDOW_BYTES

ZSTD_MAGIC = bytes.fromhex("28b52ffd")
LZ4_MAGIC = bytes.fromhex("04224d18")
_SKIPPABLE = bytes.fromhex("2a4d18")  # after a byte from 50 to 5f; both formats have them

# RFC 8878: an empty raw block that is the last one.
_ZSTD_END = bytes.fromhex("010000")
_ZSTD_DICTIONARY_BYTES = (0, 1, 2, 4)
_RLE = 1
_LZ4_END = bytes(4)
_LZ4_LARGEST_BLOCK = 4 << 20
_STORED = 0x8000_0000
_STEP = 65_536


class TruncatedData(Exception):
    """The file ends in the middle of a frame."""


class WindowTooLarge(Exception):
    """A frame needs a window of this many bytes, more than is allowed."""


class ByteReader:
    """Returns exactly the requested number of bytes, from reads of any size. Buffered bytes aren't copied per call, so
    that a million frames of nine bytes cost a million times what one does."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._held = b""
        self._at = 0

    def take(self, count: int) -> bytes:
        taken = self.peek(count)
        self._at += count
        return taken

    def peek(self, count: int) -> bytes:
        if len(self._held) - self._at < count:
            parts = [self._held[self._at :]]
            have = len(parts[0])
            while have < count and (part := self._read(max(_STEP, count - have))):
                parts.append(part)
                have += len(part)
            self._held, self._at = b"".join(parts), 0
            if have < count:
                raise TruncatedData
        return self._held[self._at : self._at + count]

    def at_end(self) -> bool:
        if self._at == len(self._held):
            self._held, self._at = self._read(_STEP), 0
        return not self._held


def is_skippable(magic: bytes) -> bool:
    return magic[1:4] == _SKIPPABLE and magic[0] & 0xF0 == 0x50


def first_magic(reader: ByteReader) -> bytes:
    """The magic of the first frame that isn't skippable, which decides the format; empty without such a frame."""
    while not reader.at_end():
        magic = reader.peek(4)
        if not is_skippable(magic):
            return magic
        _skip(reader)
    return b""


def repaired_frames(reader: ByteReader, on_end: Callable[[str], None]) -> Iterator[bytes]:
    """The frames, one after another. What isn't a frame passes unchanged, for the decoder to refuse. `on_end` is called
    with the reason when the data ends too early."""
    open_end = b""
    try:
        while not reader.at_end():
            if is_skippable(reader.peek(4)):
                _skip(reader)
                continue
            magic = reader.take(4)
            if magic == ZSTD_MAGIC:
                yield magic + (header := _zstd_header(reader))[0]
                open_end = _ZSTD_END
                yield from _zstd_blocks(reader)
                open_end = b""
                reader.take(4 if header[1] else 0)
            elif magic == LZ4_MAGIC:
                head, block_checksums, checksum = _lz4_header(reader)
                yield head
                open_end = _LZ4_END
                yield from _lz4_blocks(reader, block_checksums)
                open_end = b""
                reader.take(4 if checksum else 0)
            else:
                yield magic
    except TruncatedData:
        on_end("is cut")
        if open_end:
            yield open_end
    except WindowTooLarge as error:
        on_end(f"needs a window of {error} bytes, more than the {MAX_WINDOW_BYTES} allowed; compress it again")


def _skip(reader: ByteReader) -> None:
    left = int.from_bytes(reader.take(8)[4:], "little")
    while left:
        left -= len(reader.take(min(left, _STEP)))


def _zstd_header(reader: ByteReader) -> tuple[bytes, bool]:
    """(header of the frame that is passed on, whether a checksum follows the last block). Raises `WindowTooLarge` if
    decompressing it takes too much memory (RFC 8878, 3.1.1.1.2)."""
    descriptor = reader.take(1)[0]
    single = descriptor & 0x20
    window = b"" if single else reader.take(1)
    dictionary = reader.take(_ZSTD_DICTIONARY_BYTES[descriptor & 3])
    size = reader.take((1 if single else 0, 2, 4, 8)[descriptor >> 6])
    if single:
        # The content is the window then; 2**(10 + exponent) bytes hold it.
        content = int.from_bytes(size, "little") + (256 if len(size) == 2 else 0)
        window = bytes([min(31, max(0, max(content - 1, 0).bit_length() - 10)) << 3])
    exponent, mantissa = window[0] >> 3, window[0] & 7
    if (window_bytes := (8 + mantissa << 10 + exponent) // 8) > MAX_WINDOW_BYTES:
        raise WindowTooLarge(window_bytes)
    # The reserved bit stays, so that the decoder refuses what it must.
    return bytes([descriptor & 0x1B]) + window + dictionary, bool(descriptor & 4)


def _zstd_blocks(reader: ByteReader) -> Iterator[bytes]:
    while True:
        head = reader.take(3)
        number = int.from_bytes(head, "little")
        yield head + reader.take(1 if number >> 1 & 3 == _RLE else number >> 3)
        if number & 1:
            return


def _lz4_header(reader: ByteReader) -> tuple[bytes, bool, bool]:
    flags, sizes = reader.take(2)
    taken = reader.take(8 if flags & 0x08 else 0)
    dictionary = reader.take(4 if flags & 0x01 else 0)
    checksum = reader.take(1)
    header = LZ4_MAGIC + bytes([flags, sizes]) + taken + dictionary + checksum
    if with_right_checksum(header) != header:
        return header, False, False
    made = LZ4_MAGIC + bytes([flags & ~0x0C, sizes]) + dictionary + b"\x00"
    return with_right_checksum(made), bool(flags & 0x10), bool(flags & 0x04)


def _lz4_blocks(reader: ByteReader, checksums: bool) -> Iterator[bytes]:
    while True:
        head = reader.take(4)
        size = int.from_bytes(head, "little")
        if size == 0:
            yield head
            return
        size &= ~_STORED
        if size > _LZ4_LARGEST_BLOCK:
            yield head
            continue
        yield head + reader.take(size + (4 if checksums else 0))
