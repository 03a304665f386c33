"""A broker's log as it lies on disk or comes from a container in; the log's own lines out, each with the time that its
surroundings tell. Lines that a container runtime split are joined. Whatever a line says, nothing is raised."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime

from kafkascope.capture.decompress import Unpacked
from kafkascope.capture.source import Input, Source, Waiting
from kafkascope.limits import MAX_FRAME_BYTES

MARK = "Completed request:"
_READ_BYTES = 1 << 20
# A frame of the largest size as JSON: base64 and names take some of it again.
_LONGEST_LINE = 2 * MAX_FRAME_BYTES
# 1684 to 2255: what 64 bits of ns hold, with room for a duration on either side.
_FARTHEST_NS = 9_000_000_000 * 1_000_000_000

# containerd and CRI-O: `2026-11-15T09:30:00.123456789Z stdout P the first part`.
_CRI = re.compile(r"(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)) (stdout|stderr) ([FP])(?: |$)")
# `[2026-11-15 09:30:00,123]`, as Kafka's own layout has it, or a time with its zone.
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?\s?(Z|[+-]\d\d:?\d\d)?")


@dataclass(frozen=True, slots=True)
class LogLine:
    """`time_ns` is None where nothing tells it. Lines of the file count from 0: `number` is that of the first part,
    `last` that of the last."""

    text: str
    time_ns: int | None
    number: int
    last: int


def read_log_lines(source: Input, waiting: Waiting | None = None) -> Iterator[LogLine | None]:
    """None now and then while a growing file is waited for: all that is there has been read."""
    parts: dict[str, LogLine] = {}
    number = -1
    for line in _lines(source, waiting):
        if line is None:
            yield None
            continue
        number += 1
        text, time_ns, stream, whole = _unwrap(line.decode(errors="replace"))
        before = parts.pop(stream, None)
        found = LogLine(text, time_ns, number, number)
        if before is not None:
            found = LogLine(before.text + text, before.time_ns, before.number, number)
        if not whole and len(found.text) < _LONGEST_LINE:
            parts[stream] = found
            continue
        yield found
    yield from parts.values()


def _lines(source: Input, waiting: Waiting | None) -> Iterator[bytes | None]:
    raw = Source(source, waiting)
    with closing(raw):
        unpacked = Unpacked(raw)
        held = bytearray()
        buffer = bytearray(_READ_BYTES)
        while count := unpacked.fill(memoryview(buffer)):
            held += memoryview(buffer)[:count]
            *whole, last = bytes(held).split(b"\n")
            held = bytearray(last if len(last) < _LONGEST_LINE else b"")
            yield from whole
            if raw.live:
                yield None
        if held:
            yield bytes(held)


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
            name = stream if isinstance(stream, str) else ""
            return text.rstrip("\n"), _any_time(value.get("time")), name, text.endswith("\n")
        if isinstance(value, dict):
            told = next((t for t in value.values() if isinstance(t, str) and MARK in t), None)
            times = (value.get(name) for name in ("@timestamp", "timestamp", "time", "ts", "instant"))
            stamp = next((t for t in times if t is not None), None)
            if told is not None:
                return told, _any_time(stamp), "", True
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
            # Seconds or milliseconds: until 2286 the one is below this and the other above.
            ns = stamp * (1_000_000_000 if stamp < 10_000_000_000 else 1_000_000)
            return round(ns) if abs(ns) < _FARTHEST_NS else None
    return None


def _within(ns: int) -> int | None:
    return ns if abs(ns) < _FARTHEST_NS else None


def parse_time(text: str) -> int | None:
    """The first time in a text, in ns since 1970; one without a zone is taken for UTC. None where there is none, or
    one that 64 bits of ns do not hold."""
    match = _TIME.search(text)
    if match is None:
        return None
    try:
        zone = (match[4] or "+00:00").replace("Z", "+00:00")
        moment = datetime.fromisoformat(f"{match[1]}T{match[2]}{zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return _within(int(moment.timestamp()) * 1_000_000_000 + int((match[3] or "0").ljust(9, "0")))
