"""A path, `-` or an open file in, what kind of recording it is out: told by its content, never by its name."""

import io
import os
import stat
from typing import Any

from kafkascope.capture.decompress import Unpacked
from kafkascope.capture.log_lines import MARK
from kafkascope.capture.pcap import MAGICS
from kafkascope.capture.pcapng import MAGIC
from kafkascope.capture.source import Input, Source
from kafkascope.errors import InputError

# Where a request log must show itself: a broker may log its start before the first request.
SNIFF_BYTES = 1 << 20
# Enough of a pipe to tell: it may deliver no more for now.
SNIFF_PIPE_BYTES = 4096

CAPTURE, LOG = "capture", "log"


def sniff(given: Input) -> tuple[Input, str, bool]:
    """(what to read from, `CAPTURE` or `LOG`, whether it is a pipe). `InputError` says what else it is."""
    name = uri_of(given)
    if is_file(given):
        source = Source(given)
        try:
            head = _fill(source, SNIFF_BYTES)
        finally:
            source.close()
        return given, _kind(head, name), False
    held = _Peeked(Source(given))
    return held, _kind(held.peek(), name), True  # type: ignore[return-value]


def uri_of(given: Input) -> str:
    if isinstance(given, str | os.PathLike):
        return "standard input" if os.fspath(given) == "-" else os.fspath(given)
    name = getattr(given, "name", None)
    return name if isinstance(name, str) else "the file"


def is_file(given: Input) -> bool:
    """A regular file by its path: one that can be opened again."""
    if not isinstance(given, str | os.PathLike) or os.fspath(given) == "-":
        return False
    try:
        return not stat.S_ISFIFO(mode := os.stat(given).st_mode) and not stat.S_ISCHR(mode)
    except (OSError, ValueError):
        return True  # opening it says why it cannot be


def _kind(head: bytes, name: str) -> str:
    start = _fill(Unpacked(Source(io.BytesIO(head))), SNIFF_BYTES)
    if start[:4] in MAGICS or start[:4] == MAGIC:
        return CAPTURE
    if MARK.encode() in start:
        return LOG
    if not head:
        raise InputError(f"{name} is empty")
    if start and all(byte >= 32 or 9 <= byte <= 13 or byte == 27 for byte in start[:4096]):
        raise InputError(
            f"{name} is no recording: it is text without a line of a broker's request log (`{MARK}{{…}}`);"
            " captures are pcap or pcapng"
        )
    raise InputError(
        f"{name} is no recording: it starts neither as pcap nor as pcapng, plain or in gzip, zstd, xz or lz4"
    )


def _fill(source: Source | Unpacked, most: int) -> bytes:
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

    def peek(self) -> bytes:
        """A first read that tells magic or text; a log that starts slowly is waited for."""
        while len(self._held) < SNIFF_BYTES:
            buffer = bytearray(SNIFF_PIPE_BYTES)
            count = self._source.fill(memoryview(buffer))
            self._held += bytes(buffer[:count])
            if count == 0 or self._held[:4] in MAGICS or self._held[:4] == MAGIC or MARK.encode() in self._held:
                break
        return self._held

    def readinto(self, view: Any) -> int:
        if self._held:
            count = min(len(self._held), len(view))
            view[:count] = self._held[:count]
            self._held = self._held[count:]
            return count
        return self._source.fill(memoryview(view))

    def readable(self) -> bool:
        return True
