"""Reads the lines of a broker's log that may contain a request, each with the time found around it. Lines that a
container runtime split are joined. It never raises on the contents of a line; one that is too long is reported, and
reading continues after it."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kafkascope.capture.files.decompress import Decompressor
from kafkascope.capture.files.source import FollowPolicy, Input, Source
from kafkascope.capture.formats import REQUEST_LOG
from kafkascope.limits import MAX_LINE_BYTES

MARK = REQUEST_LOG.mark.decode()
_READ_BYTES = 1 << 20
# 1684 to 2255: the range of 64 bits of ns, with room for a duration on either side.
_FARTHEST_NS = 9_000_000_000 * 1_000_000_000

# containerd and CRI-O: `2026-11-15T09:30:00.123456789Z stdout P the first part`.
_CRI = re.compile(r"(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)) (stdout|stderr) ([FP])(?: |$)")
# `[2026-11-15 09:30:00,123]` as in Kafka's default layout, or a time with its zone.
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?\s?(Z|[+-]\d\d:?\d\d)?")


# Lines with a request, or written by a container runtime, have one of these. Other lines are only counted.
_CANDIDATE = re.compile(re.escape(REQUEST_LOG.mark) + rb'|"log"| std(?:out|err) [FP]')


@dataclass(frozen=True, slots=True)
class LogLine:
    """`time_ns` is None if unknown. Lines of the file count from 0: `number` is that of the first part, `last` that of
    the last."""

    text: str
    time_ns: int | None
    number: int
    last: int


@dataclass(frozen=True, slots=True)
class LongLine:
    """A line of more than MAX_LINE_BYTES in all its parts: its number, offset and length."""

    number: int
    offset: int
    length: int


@dataclass(slots=True)
class _Raw:
    """A line as it is in the file."""

    data: bytes
    number: int
    offset: int


@dataclass(slots=True)
class _Parts:
    """The parts so far of a line that a container runtime split."""

    time_ns: int | None
    first: _Raw
    length: int = 0
    texts: list[str] = field(default_factory=list)

    def add(self, text: str, length: int) -> None:
        self.length += length
        if self.length <= MAX_LINE_BYTES:
            self.texts.append(text)
        else:
            self.texts = []

    def line(self, last: int) -> LogLine | LongLine:
        if self.length > MAX_LINE_BYTES:
            return LongLine(self.first.number, self.first.offset, self.length)
        return LogLine("".join(self.texts), self.time_ns, self.first.number, last)


class LogLines:
    """`count` is how many lines of the file have been read, including those without a request."""

    def __init__(self, source: Input, waiting: FollowPolicy | None = None) -> None:
        self._source = source
        self._waiting = waiting
        self.count = 0

    def read(self) -> Iterator[LogLine | LongLine | None]:
        """The lines; None whenever all that a growing file has so far has been read."""
        parts: dict[str, _Parts] = {}
        for raw in self._raw():
            if not isinstance(raw, _Raw):
                yield raw
                continue
            text, time_ns, stream, whole = _unwrap(raw.data.decode(errors="replace"))
            begun = parts.pop(stream, None)
            if begun is None and whole:
                yield LogLine(text, time_ns, raw.number, raw.number)
                continue
            begun = begun or _Parts(time_ns, raw)
            begun.add(text, len(raw.data))
            if not whole:
                parts[stream] = begun
            else:
                yield begun.line(raw.number)
        for begun in parts.values():
            yield begun.line(self.count - 1)

    def _raw(self) -> Iterator[_Raw | LongLine | None]:
        source = Source(self._source, self._waiting)
        with closing(source):
            unpacked = Decompressor(source)
            held: list[bytes] = []  # of an incomplete line, unless it is too long already
            length = offset = 0
            buffer = bytearray(_READ_BYTES)
            while count := unpacked.fill(memoryview(buffer)):
                chunk = bytes(memoryview(buffer)[:count])
                start = 0
                if length:
                    start = chunk.find(b"\n") + 1
                    rest = chunk[: start - 1] if start else chunk
                    length += len(rest)
                    held = [*held, rest] if length <= MAX_LINE_BYTES else []
                    if start:
                        yield self._line(held, offset + start - 1 - length, length)
                        held, length = [], 0
                end = max(chunk.rfind(b"\n") + 1, start)
                if not length:
                    yield from self._candidates(chunk, start, end, offset)
                    length = count - end
                    held = [chunk[end:]]
                offset += count
                if source.live:
                    yield None
            if length:
                yield self._line(held, offset - length, length)

    def _line(self, held: list[bytes], offset: int, length: int) -> _Raw | LongLine:
        number = self.count
        self.count += 1
        return _Raw(b"".join(held), number, offset) if held else LongLine(number, offset, length)

    def _candidates(self, chunk: bytes, start: int, end: int, offset: int) -> Iterator[_Raw]:
        """Those of the whole lines from `start` to `end` that may hold a request."""
        while match := _CANDIDATE.search(chunk, start, end):
            begin = chunk.rfind(b"\n", start, match.start()) + 1 or start
            stop = chunk.index(b"\n", match.start())
            self.count += chunk.count(b"\n", start, begin)
            yield _Raw(chunk[begin:stop], self.count, offset + begin)
            self.count += 1
            start = stop + 1
        self.count += chunk.count(b"\n", start, end)


def _unwrap(line: str) -> tuple[str, int | None, str, bool]:
    """(text, time, stream, whether the line ends here)"""
    line = line.rstrip("\r")
    if match := _CRI.match(line):
        return line[match.end() :], parse_time(match[1]), match[2], match[3] == "F"
    if line.startswith("{") and '"' in line:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return line, None, "", True
        if isinstance(value, dict) and isinstance(text := value.get("log"), str):
            # Docker's json-file: a part has no line break at its end.
            stream = value.get("stream")
            name = stream if stream in ("stdout", "stderr") else "other"
            return text.rstrip("\n"), _any_time(value.get("time")), name, text.endswith("\n")
        if isinstance(value, dict):
            message = next((t for t in value.values() if isinstance(t, str) and MARK in t), None)
            times = (value.get(name) for name in ("@timestamp", "timestamp", "time", "ts", "instant"))
            stamp = next((t for t in times if t is not None), None)
            if message is not None:
                return message, _any_time(stamp), "", True
    return line, None, "", True


def _any_time(stamp: object) -> int | None:
    match stamp:
        case str():
            return parse_time(stamp)
        case {"epochSecond": int(seconds), **rest} if not isinstance(seconds, bool):
            # log4j2's JSON layout
            nanos = rest.get("nanoOfSecond", 0)
            return _within(seconds * 1_000_000_000 + nanos) if isinstance(nanos, int) else None
        case bool():
            return None
        case int() | float():
            # Seconds or milliseconds: until 2286 seconds are below this and milliseconds above.
            ns = stamp * (1_000_000_000 if stamp < 10_000_000_000 else 1_000_000)
            return round(ns) if abs(ns) < _FARTHEST_NS else None
    return None


def _within(ns: int) -> int | None:
    return ns if abs(ns) < _FARTHEST_NS else None


def parse_time(text: str) -> int | None:
    """The first time in a text, in ns since 1970; one without a zone is taken as UTC. None if there is none, or one
    that 64 bits of ns can't hold."""
    match = _TIME.search(text)
    if match is None:
        return None
    try:
        zone = (match[4] or "+00:00").replace("Z", "+00:00")
        moment = datetime.fromisoformat(f"{match[1]}T{match[2]}{zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return _within(int(moment.timestamp()) * 1_000_000_000 + int((match[3] or "0").ljust(9, "0")))
