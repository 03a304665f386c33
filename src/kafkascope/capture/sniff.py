"""Finds out which format a recording has from its content, without reading further than it takes."""

import codecs
import io
import os
import stat
import sys
from dataclasses import dataclass
from typing import Any

from kafkascope.capture.files.decompress import Decompressor
from kafkascope.capture.files.source import FollowPolicy, Input, Source, name_of
from kafkascope.capture.files.unread_formats import unread_format
from kafkascope.capture.formats import (
    CAPTURE_NAMES,
    FORMAT_START_BYTES,
    LONGEST_MARK,
    REQUEST_LOG,
    SNIFF_BYTES,
    Format,
    compressions_or_plain,
    format_marked,
    format_starting,
)
from kafkascope.errors import InputError

# The largest block of lz4 has 4 MiB, and none of it can be decompressed before it is complete.
SNIFF_PACKED_BYTES = 5 << 20
_STEP = 65_536
_TEXT_BYTES = 4096
_ASCII = bytes([*range(9, 14), 27, *range(32, 127)])
_OF_TEXT = _ASCII + bytes(range(128, 256))


@dataclass(frozen=True, slots=True)
class Recording:
    """`source` is to be read from its start. `file` is the same object if it is a regular file that `sniff` opened, to
    be closed by the caller; `live` says that more may come later, `packed` that it is compressed."""

    source: Any
    format: Format
    live: bool
    file: io.FileIO | None
    packed: bool = False

    @property
    def problem(self) -> str | None:
        """Once everything is read: why a file that decompresses its data itself ended too early."""
        return self.source.problem if isinstance(self.source, _PeekedPipe) else None


def sniff(source: Input, waiting: FollowPolicy | None = None) -> Recording:
    """The format of `source`. If it isn't a recording, the `InputError` names what it is. With `waiting`, a growing
    file is followed until its format is clear."""
    file = _regular(source)
    if file is None:
        peeked = _PeekedPipe(Source(source))
        form, packed = peeked.format()
        return Recording(peeked, form, True, None, packed)
    try:
        if plain := _plain_format(file):
            return Recording(file, plain, waiting is not None, file)
        start = file.tell()
        form, packed, _ = _format(Source(file, waiting), uri_of(source))
        file.seek(start)
    except BaseException:
        file.close()
        raise
    return Recording(file, form, waiting is not None, file, packed)


def _plain_format(file: io.FileIO) -> Format | None:
    """Most files are plain captures and recognized by their first bytes, so that nothing has to be read twice."""
    try:
        return format_starting(os.pread(file.fileno(), FORMAT_START_BYTES, file.tell()))
    except OSError:
        return None  # reading it again reports why it can't be read


def uri_of(source: Input) -> str:
    if isinstance(source, str | os.PathLike):
        return "standard input" if os.fspath(source) == "-" else os.fspath(source)
    return name_of(source)


def _regular(source: Input) -> io.FileIO | None:
    """A file object of our own for a regular file, given by its path or on standard input."""
    if not isinstance(source, str | os.PathLike):
        return None
    try:
        if os.fspath(source) != "-":
            return io.FileIO(os.fspath(source)) if stat.S_ISREG(os.stat(source).st_mode) else None
        if sys.stdin is None or not stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode):
            return None
        file = io.FileIO(sys.stdin.fileno(), closefd=False)
        file.name = uri_of(source)  # type: ignore[misc]
        return file
    except (OSError, ValueError):
        return None  # opening it again reports why it can't be opened


def _format(source: Source, name: str) -> tuple[Format, bool, bytes]:
    """(format, whether it is compressed, the bytes read). Stops reading as soon as the format is clear: a pipe may
    deliver no more for now."""
    looked = _BufferedSource(source)
    unpacked = Decompressor(looked)
    start = bytearray()
    # First enough for a magic, then what a log may have before its first request; no byte is searched twice.
    while len(start) < SNIFF_BYTES and (
        piece := _piece(unpacked, FORMAT_START_BYTES if len(start) < FORMAT_START_BYTES else _STEP)
    ):
        before = max(0, len(start) - LONGEST_MARK)
        start += piece
        if len(start) < FORMAT_START_BYTES:
            continue
        form = format_starting(start[:FORMAT_START_BYTES]) or format_marked(start, before)
        if form is not None:
            return form, bool(unpacked.form), bytes(looked.held)
        if looked.at == len(looked.held) and not _is_text(bytes(start[:_TEXT_BYTES])):
            break
    held = bytes(looked.held)
    if source.problem and not held:
        raise InputError(f"{name}: {source.problem}, and nothing of it can be decompressed")
    raise InputError(_refusal(held, name))


def _refusal(held: bytes, name: str) -> str:
    if not held:
        why = (
            "; tcpdump needs -w - to write packets to a pipe" if name == "standard input" else ": nothing was recorded"
        )
        return f"{name} is empty{why}"
    unpacked = Decompressor(Source(io.BytesIO(held)))
    start = _fill(unpacked, SNIFF_BYTES)
    inside = f" (inside {unpacked.form})" if unpacked.form else ""
    if unpacked.form and not start:
        return (
            f"{name}: {unpacked.problem or f'the {unpacked.form} data is empty'}, and nothing of it can be decompressed"
        )
    if named := unread_format(start):
        return f"{name}{inside} is {named}"
    if _is_text(start):
        return (
            f"{name} isn't a recording: it is text without a line of a broker's request log"
            f" (`{REQUEST_LOG.mark.decode()}{{…}}`){inside};"
            f" captures are {' or '.join(CAPTURE_NAMES)}, as tcpdump -w writes them"
        )
    packed = inside or f", {compressions_or_plain()}"
    return f"{name} isn't a recording: it starts neither as {' nor as '.join(CAPTURE_NAMES)}{packed}"


def _is_text(start: bytes) -> bool:
    """Whether it is UTF-8, or mostly ASCII in another encoding, without bytes that text never has."""
    looked = start[:_TEXT_BYTES]
    if not looked or looked.translate(None, _OF_TEXT):
        return False
    try:
        # The last character may be cut.
        return bool(codecs.getincrementaldecoder("utf-8")().decode(looked))
    except UnicodeDecodeError:
        return len(looked.translate(None, _ASCII)) * 4 < len(looked)


class _BufferedSource:
    """A source that is read no further than needed to recognize the format. `held` is what was read, in steps; the
    bytes before `at` were passed on."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.live = source.live
        self.held = bytearray()
        self.at = 0

    def fill(self, view: memoryview) -> int:
        if self.at == len(self.held) < SNIFF_PACKED_BYTES:
            step = bytearray(_STEP)
            self.held += step[: self._source.fill(memoryview(step))]
        taken = self.held[self.at : self.at + len(view)]
        view[: len(taken)] = taken
        self.at += len(taken)
        return len(taken)


def _piece(source: Decompressor, most: int) -> bytes:
    buffer = bytearray(most)
    return bytes(buffer[: source.fill(memoryview(buffer))])


def _fill(source: Decompressor, most: int) -> bytes:
    buffer = bytearray(most)
    got = 0
    while got < most and (count := source.fill(memoryview(buffer)[got:])):
        got += count
    return bytes(buffer[:got])


class _PeekedPipe(io.RawIOBase):
    """A pipe whose first bytes were read already: they come first."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._held = b""
        self.name = source.name

    @property
    def problem(self) -> str | None:
        return self._source.problem

    def format(self) -> tuple[Format, bool]:
        form, packed, self._held = _format(self._source, self.name)
        return form, packed

    def readinto(self, view: Any) -> int:
        if self._held:
            count = min(len(self._held), len(view))
            view[:count] = self._held[:count]
            self._held = self._held[count:]
            return count
        return self._source.fill(memoryview(view))

    def readable(self) -> bool:
        return True
