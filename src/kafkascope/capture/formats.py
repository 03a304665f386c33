"""A path, `-` or an open file in, what kind of recording it is out: told by its content, never by its name."""

import codecs
import io
import os
import stat
import sys
from dataclasses import dataclass
from typing import Any

from kafkascope.capture.files.decompress import Unpacked
from kafkascope.capture.files.pcap import MAGICS
from kafkascope.capture.files.pcapng import MAGIC
from kafkascope.capture.files.source import Input, Source, Waiting, name_of
from kafkascope.capture.files.unread_formats import unread_format
from kafkascope.capture.request_log.lines import MARK
from kafkascope.errors import InputError

# Where a request log must show itself: a broker may log its start before the first request.
SNIFF_BYTES = 1 << 20
# The largest block of lz4 has 4 MiB, and nothing comes out of it before it is whole.
SNIFF_PACKED_BYTES = 5 << 20
_STEP = 65_536
_TEXT_BYTES = 4096
_ASCII = bytes([*range(9, 14), 27, *range(32, 127)])
_OF_TEXT = _ASCII + bytes(range(128, 256))

CAPTURE, LOG = "capture", "log"


@dataclass(frozen=True, slots=True)
class Found:
    """`source` is to be read from its start. `file` is the same where it is a regular file that we opened, to be closed
    by the caller; `live` says that more may come later, `packed` that it is compressed."""

    source: Any
    kind: str
    live: bool
    file: io.FileIO | None
    packed: bool = False

    @property
    def problem(self) -> str | None:
        """Once all is read: why a file that unpacks its data itself came to its end too early."""
        return self.source.problem if isinstance(self.source, _Peeked) else None


def sniff(given: Input, waiting: Waiting | None = None) -> Found:
    """`InputError` says what it is where it is no recording. With `waiting` a file that only begins is waited for."""
    file = _regular(given)
    if file is None:
        held = _Peeked(Source(given))
        kind, packed = held.kind()
        return Found(held, kind, True, None, packed)
    try:
        if _is_capture(file):
            return Found(file, CAPTURE, waiting is not None, file)
        start = file.tell()
        kind, packed, _ = _kind(Source(file, waiting), uri_of(given))
        file.seek(start)
    except BaseException:
        file.close()
        raise
    return Found(file, kind, waiting is not None, file, packed)


def _is_capture(file: io.FileIO) -> bool:
    """Most files are plain captures, and their first bytes say so: nothing has to be read twice."""
    try:
        head = os.pread(file.fileno(), len(MAGIC), file.tell())
    except OSError:
        return False  # reading it again says why it cannot be
    return head in MAGICS or head == MAGIC


def uri_of(given: Input) -> str:
    if isinstance(given, str | os.PathLike):
        return "standard input" if os.fspath(given) == "-" else os.fspath(given)
    return name_of(given)


def _regular(given: Input) -> io.FileIO | None:
    """A file of our own where it is a regular one, given by its path or on standard input."""
    if not isinstance(given, str | os.PathLike):
        return None
    try:
        if os.fspath(given) != "-":
            return io.FileIO(os.fspath(given)) if stat.S_ISREG(os.stat(given).st_mode) else None
        if sys.stdin is None or not stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode):
            return None
        file = io.FileIO(sys.stdin.fileno(), closefd=False)
        file.name = uri_of(given)  # type: ignore[misc]
        return file
    except (OSError, ValueError):
        return None  # opening it again says why it cannot be


def _kind(source: Source, name: str) -> tuple[str, bool, bytes]:
    """The kind, whether it is compressed, and what was read to tell. Stops as soon as it is clear: a pipe may deliver
    no more for now."""
    looked = _Looked(source)
    unpacked = Unpacked(looked)
    start = bytearray()
    # Enough for a magic; then what a log may hold before its first request, once and not from the start each time.
    while len(start) < SNIFF_BYTES and (piece := _piece(unpacked, 4 if len(start) < 4 else _STEP)):
        before = max(0, len(start) - len(MARK))
        start += piece
        if len(start) < 4:
            continue
        if bytes(start[:4]) in MAGICS or start[:4] == MAGIC:
            return CAPTURE, bool(unpacked.form), bytes(looked.held)
        if start.find(MARK.encode(), before) >= 0:
            return LOG, bool(unpacked.form), bytes(looked.held)
        if looked.at == len(looked.held) and not _is_text(bytes(start[:_TEXT_BYTES])):
            break
    held = bytes(looked.held)
    if source.problem and not held:
        raise InputError(f"{name}: {source.problem}, and nothing of it can be unpacked")
    raise InputError(_refusal(held, name))


def _refusal(held: bytes, name: str) -> str:
    if not held:
        why = "; tcpdump needs -w - to write packets to a pipe" if name == "standard input" else ": nothing is recorded"
        return f"{name} is empty{why}"
    unpacked = Unpacked(Source(io.BytesIO(held)))
    start = _fill(unpacked, SNIFF_BYTES)
    inside = f" (inside {unpacked.form})" if unpacked.form else ""
    if unpacked.form and not start:
        return f"{name}: {unpacked.problem or f'the {unpacked.form} data is empty'}, and nothing of it can be unpacked"
    if named := unread_format(start):
        return f"{name}{inside} is {named}"
    if _is_text(start):
        return (
            f"{name} is no recording: it is text without a line of a broker's request log (`{MARK}{{…}}`){inside};"
            " captures are pcap or pcapng, as tcpdump -w writes them"
        )
    packed = inside or ", plain or in gzip, zstd, xz or lz4"
    return f"{name} is no recording: it starts neither as pcap nor as pcapng{packed}"


def _is_text(start: bytes) -> bool:
    """UTF-8, or mostly ASCII where it is of another coding; nothing with bytes that no text has."""
    looked = start[:_TEXT_BYTES]
    if not looked or looked.translate(None, _OF_TEXT):
        return False
    try:
        # The last letter may be cut.
        return bool(codecs.getincrementaldecoder("utf-8")().decode(looked))
    except UnicodeDecodeError:
        return len(looked.translate(None, _ASCII)) * 4 < len(looked)


class _Looked:
    """A source that is read no further than it takes to tell what it is. `held` is what was read, in steps; all before
    `at` was handed on."""

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


def _piece(source: Unpacked, most: int) -> bytes:
    buffer = bytearray(most)
    return bytes(buffer[: source.fill(memoryview(buffer))])


def _fill(source: Unpacked, most: int) -> bytes:
    buffer = bytearray(most)
    got = 0
    while got < most and (count := source.fill(memoryview(buffer)[got:])):
        got += count
    return bytes(buffer[:got])


class _Peeked(io.RawIOBase):
    """A pipe whose first bytes were looked at."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._held = b""
        self.name = source.name

    @property
    def problem(self) -> str | None:
        return self._source.problem

    def kind(self) -> tuple[str, bool]:
        kind, packed, self._held = _kind(self._source, self.name)
        return kind, packed

    def readinto(self, view: Any) -> int:
        if self._held:
            count = min(len(self._held), len(view))
            view[:count] = self._held[:count]
            self._held = self._held[count:]
            return count
        return self._source.fill(memoryview(view))

    def readable(self) -> bool:
        return True
