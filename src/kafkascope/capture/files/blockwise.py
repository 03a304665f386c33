"""The bytes of a zstd or lz4 file in, the same frames out in a form that may end after any block: no content size, no
checksum of the whole. So what came before a cut can be unpacked, block by block."""

from collections.abc import Callable, Iterator

from kafkascope.codec.records.lz4_frame import with_right_checksum
from kafkascope.limits import MAX_WINDOW_BYTES

ZSTD_MAGIC = bytes.fromhex("28b52ffd")
LZ4_MAGIC = bytes.fromhex("04224d18")
_SKIPPABLE = bytes.fromhex("2a4d18")  # behind a byte from 50 to 5f; both formats have them

# RFC 8878: an empty raw block that is the last one.
_ZSTD_END = bytes.fromhex("010000")
_ZSTD_DICTIONARY_BYTES = (0, 1, 2, 4)
_RLE = 1
_LZ4_END = bytes(4)
_LZ4_LARGEST_BLOCK = 4 << 20
_STORED = 0x8000_0000
_STEP = 65_536


class Cut(Exception):
    """The file ends where more had to come."""


class TooWide(Exception):
    """A frame needs a window of so many bytes."""


class Taker:
    """Exactly as many bytes as asked for out of reads of any size. What is held isn't copied for each of them: a
    million frames of nine bytes cost a million times what one does."""

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
                raise Cut
        return self._held[self._at : self._at + count]

    def at_end(self) -> bool:
        if self._at == len(self._held):
            self._held, self._at = self._read(_STEP), 0
        return not self._held


def is_skippable(magic: bytes) -> bool:
    return magic[1:4] == _SKIPPABLE and magic[0] & 0xF0 == 0x50


def first_magic(taker: Taker) -> bytes:
    """That of the first frame that is not to be skipped, and tells the format; nothing where there is none."""
    while not taker.at_end():
        magic = taker.peek(4)
        if not is_skippable(magic):
            return magic
        _skip(taker)
    return b""


def mended(taker: Taker, on_end: Callable[[str], None]) -> Iterator[bytes]:
    """Frames, one after the other; anything that is none goes through as it is, for the decoder to refuse. `on_end`
    hears why they end too early."""
    open_end = b""
    try:
        while not taker.at_end():
            if is_skippable(taker.peek(4)):
                _skip(taker)
                continue
            magic = taker.take(4)
            if magic == ZSTD_MAGIC:
                yield magic + (header := _zstd_header(taker))[0]
                open_end = _ZSTD_END
                yield from _zstd_blocks(taker)
                open_end = b""
                taker.take(4 if header[1] else 0)
            elif magic == LZ4_MAGIC:
                head, block_checksums, checksum = _lz4_header(taker)
                yield head
                open_end = _LZ4_END
                yield from _lz4_blocks(taker, block_checksums)
                open_end = b""
                taker.take(4 if checksum else 0)
            else:
                yield magic
    except Cut:
        on_end("is cut")
        if open_end:
            yield open_end
    except TooWide as error:
        on_end(f"needs a window of {error} bytes, {MAX_WINDOW_BYTES} are allowed; pack it again")


def _skip(taker: Taker) -> None:
    left = int.from_bytes(taker.take(8)[4:], "little")
    while left:
        left -= len(taker.take(min(left, _STEP)))


def _zstd_header(taker: Taker) -> tuple[bytes, bool]:
    """Of the frame that we pass on, and whether a checksum follows the last block. `TooWide` where unpacking it takes
    too much memory (RFC 8878, 3.1.1.1.2)."""
    descriptor = taker.take(1)[0]
    single = descriptor & 0x20
    window = b"" if single else taker.take(1)
    dictionary = taker.take(_ZSTD_DICTIONARY_BYTES[descriptor & 3])
    size = taker.take((1 if single else 0, 2, 4, 8)[descriptor >> 6])
    if single:
        # The content is the window then; 2**(10 + exponent) bytes hold it.
        content = int.from_bytes(size, "little") + (256 if len(size) == 2 else 0)
        window = bytes([min(31, max(0, max(content - 1, 0).bit_length() - 10)) << 3])
    exponent, mantissa = window[0] >> 3, window[0] & 7
    if (wanted := (8 + mantissa << 10 + exponent) // 8) > MAX_WINDOW_BYTES:
        raise TooWide(wanted)
    # The reserved bit stays, so that the decoder refuses what it must.
    return bytes([descriptor & 0x1B]) + window + dictionary, bool(descriptor & 4)


def _zstd_blocks(taker: Taker) -> Iterator[bytes]:
    while True:
        head = taker.take(3)
        number = int.from_bytes(head, "little")
        yield head + taker.take(1 if number >> 1 & 3 == _RLE else number >> 3)
        if number & 1:
            return


def _lz4_header(taker: Taker) -> tuple[bytes, bool, bool]:
    flags, sizes = taker.take(2)
    taken = taker.take(8 if flags & 0x08 else 0)
    dictionary = taker.take(4 if flags & 0x01 else 0)
    checksum = taker.take(1)
    given = LZ4_MAGIC + bytes([flags, sizes]) + taken + dictionary + checksum
    if with_right_checksum(given) != given:
        return given, False, False
    made = LZ4_MAGIC + bytes([flags & ~0x0C, sizes]) + dictionary + b"\x00"
    return with_right_checksum(made), bool(flags & 0x10), bool(flags & 0x04)


def _lz4_blocks(taker: Taker, checksums: bool) -> Iterator[bytes]:
    while True:
        head = taker.take(4)
        size = int.from_bytes(head, "little")
        if size == 0:
            yield head
            return
        size &= ~_STORED
        if size > _LZ4_LARGEST_BLOCK:
            yield head
            continue
        yield head + taker.take(size + (4 if checksums else 0))
