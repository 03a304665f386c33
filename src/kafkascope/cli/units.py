"""Times, sizes and counts as people read and write them."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from kafkascope.errors import UsageError
from kafkascope.schema.names import clip

UNKNOWN_VALUE = "?"

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(us|µs|ms|s|m|h|d)")
_DAY = 86_400_000_000
_MICROSECONDS = {"us": 1, "µs": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": _DAY}
# What clocks, dates and waits all still count with.
_LONGEST_YEARS = 100
_LONGEST = _LONGEST_YEARS * 365 * _DAY


def parse_duration(text: str, flag: str) -> int:
    """`100ms` in microseconds."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{flag}: '{clip(text)}' is no duration; say 250us, 100ms, 1.5s, 2m, 24h or 7d")
    microseconds = float(match[1]) * _MICROSECONDS[match[2]]
    if microseconds > _LONGEST:
        raise UsageError(f"{flag}: the longest is {_LONGEST_YEARS} years; '{clip(text)}' is more")
    return round(microseconds)


def parse_moment(text: str, flag: str) -> datetime | None:
    """A time, or `-` for an open end. Without a zone it is UTC."""
    if text == "-":
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise UsageError(f"{flag}: '{clip(text)}' is no time; say 2026-11-15T09:30:00, or - for an open end") from None


def latency(microseconds: int | None) -> str:
    """Three digits that matter: `87 µs`, `4.21 ms`, `1.50 s`."""
    if microseconds is None:
        return ""
    if microseconds < 1_000:
        return f"{microseconds} µs"
    for unit, size in (("ms", 1_000), ("s", 1_000_000)):
        value = microseconds / size
        if value < 999.5 or unit == "s":
            return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"
    raise AssertionError


def size(count: int | None) -> str:
    if count is None:
        return ""
    if count < 1_000:
        return f"{count} B"
    value = float(count)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1_000
        if value < 999.5 or unit == "TB":
            return f"{value:.{1 if value < 99.95 else 0}f} {unit}"
    raise AssertionError


def number(count: int | None, unknown: str = UNKNOWN_VALUE) -> str:
    """`1,234`; what is not known says so."""
    return unknown if count is None else f"{count:,}"


def plural(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def number_runs(numbers: Sequence[int]) -> str:
    """`0-3,7`: runs of partitions are short."""
    from kafkascope.schema.versions import format_versions

    return format_versions(sorted(numbers)).replace(", ", ",")
