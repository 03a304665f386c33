"""A broker's log as it lies on disk or comes from a container in; the log's own lines out, each with the time that its
surroundings tell. Lines that a container runtime split are joined."""

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

# containerd and CRI-O: `2026-11-15T09:30:00.123456789Z stdout P the first part`.
_CRI = re.compile(r"(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)) (stdout|stderr) ([FP])(?: |$)")
# `[2026-11-15 09:30:00,123]`, as Kafka's own layout has it, or a time with its zone.
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?\s?(Z|[+-]\d\d:?\d\d)?")


@dataclass(frozen=True, slots=True)
class LogLine:
    """`time_ns` is None where nothing tells it. `number` counts the lines of the file from 0: the first part's."""

    text: str
    time_ns: int | None
    number: int


def read_log_lines(source: Input, waiting: Waiting | None = None) -> Iterator[LogLine | None]:
    """None now and then while a growing file is waited for: all that is there has been read."""
    parts: dict[str, LogLine] = {}
    for number, line in enumerate(_lines(source, waiting)):
        if line is None:
            yield None
            continue
        text, time_ns, stream, whole = _unwrap(line.decode(errors="replace"))
        before = parts.pop(stream, None)
        found = LogLine(text, time_ns, number)
        if before is not None:
            found = LogLine(before.text + text, before.time_ns, before.number)
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
            stream = str(value.get("stream"))
            return text.rstrip("\n"), parse_time(str(value.get("time"))), stream, text.endswith("\n")
        if isinstance(value, dict):
            told = next((t for t in value.values() if isinstance(t, str) and MARK in t), None)
            times = (value.get(name) for name in ("@timestamp", "timestamp", "time", "ts", "instant"))
            stamp = next((t for t in times if t is not None), None)
            if told is not None:
                return told, _any_time(stamp), "", True
    return line, None, "", True


def _any_time(stamp: object) -> int | None:
    if isinstance(stamp, dict) and isinstance(stamp.get("epochSecond"), int):
        # log4j2's JSON layout
        return int(stamp["epochSecond"]) * 1_000_000_000 + int(stamp.get("nanoOfSecond", 0))
    if isinstance(stamp, (int, float)) and not isinstance(stamp, bool):
        # Seconds or milliseconds: until 2286 the one is below this and the other above.
        return round(stamp * (1_000_000_000 if stamp < 10_000_000_000 else 1_000_000))
    return parse_time(stamp) if isinstance(stamp, str) else None


def parse_time(text: str) -> int | None:
    """The first time in a text, in ns since 1970; one without a zone is taken for UTC."""
    match = _TIME.search(text)
    if match is None:
        return None
    try:
        zone = (match[4] or "+00:00").replace("Z", "+00:00")
        moment = datetime.fromisoformat(f"{match[1]}T{match[2]}{zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return int(moment.timestamp()) * 1_000_000_000 + int((match[3] or "0").ljust(9, "0"))
