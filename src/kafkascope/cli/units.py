"""Parses durations and times that users type, and shortens runs of numbers."""

import re
from collections.abc import Sequence
from datetime import datetime

from kafkascope import times
from kafkascope.errors import UsageError
from kafkascope.schema.names import clip

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(us|µs|ms|s|m|h|d)")
_DAY = 86_400_000_000
_MICROSECONDS = {"us": 1, "µs": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": _DAY}
# Clocks, dates and waits all support this many.
_LONGEST_YEARS = 100
_LONGEST = _LONGEST_YEARS * 365 * _DAY


def parse_duration(text: str, flag: str) -> int:
    """Parses `100ms` to microseconds."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{flag}: '{clip(text)}' isn't a duration; write it as 250us, 100ms, 1.5s, 2m, 24h or 7d")
    microseconds = float(match[1]) * _MICROSECONDS[match[2]]
    if microseconds > _LONGEST:
        raise UsageError(f"{flag}: '{clip(text)}' is more than {_LONGEST_YEARS} years, the limit")
    return round(microseconds)


def parse_moment(text: str, flag: str) -> datetime | None:
    """Parses a time, or `-` for an open end. Without a zone it's UTC."""
    if text == "-":
        return None
    moment = times.parse_moment(text)
    if moment is None:
        raise UsageError(f"{flag}: '{clip(text)}' isn't a time; write it as 2026-11-15T09:30:00, or - for an open end")
    return moment


def number_runs(numbers: Sequence[int]) -> str:
    """`0-3,7`: shortens runs of numbers."""
    from kafkascope.schema.versions import format_versions

    return format_versions(sorted(numbers)).replace(", ", ",")
