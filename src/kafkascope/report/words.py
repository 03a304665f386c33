"""Formats times, durations and numbers for the report, with a dash for unknown values."""

from kafkascope import formatting
from kafkascope.formatting import span
from kafkascope.times import moment_of

UNKNOWN_TEXT = "unknown"
# For a cell of a table.
_NOTHING = "–"


def day(microseconds: int) -> str:
    """`15 Nov 2026`."""
    moment = moment_of(microseconds)
    return UNKNOWN_TEXT if moment is None else f"{moment.day} {moment:%b %Y}"


def clock(microseconds: int | None, unit_us: int = 1_000) -> str:
    """`12:07:29.363`, `12:07:29` or `12:07`, depending on the unit."""
    moment = None if microseconds is None else moment_of(microseconds)
    if moment is None:
        return UNKNOWN_TEXT
    if unit_us >= 60_000_000:
        return f"{moment:%H:%M}"
    return f"{moment:%H:%M:%S}" + ("" if unit_us >= 1_000_000 else f".{moment.microsecond // 1000:03}")


def when(microseconds: int | None, unit_us: int = 1_000) -> str:
    """`15 Nov 2026 12:07:29.363`."""
    if microseconds is None or moment_of(microseconds) is None:
        return UNKNOWN_TEXT
    return f"{day(microseconds)} {clock(microseconds, unit_us)}"


def interval(first: int | None, last: int | None, unit_us: int = 1_000) -> str:
    """`15 Nov 2026 12:07:26.363 – 12:07:29.363`; a common day appears once."""
    if first is None or last is None:
        return when(first if last is None else last, unit_us)
    if when(first, unit_us) == when(last, unit_us):
        return when(first, unit_us)
    return f"{when(first, unit_us)} – {clock(last, unit_us) if day(first) == day(last) else when(last, unit_us)}"


def lasting(microseconds: int | None) -> str:
    """`87 µs`, `4.2 ms`, `3.3 s`."""
    if microseconds is None:
        return _NOTHING
    if microseconds < 1_000:
        return f"{microseconds} µs" if microseconds else "0 s"
    if microseconds < 10_000:
        return f"{microseconds / 1000:.1f}".removesuffix(".0") + " ms"
    return span(microseconds / 1000)


def shorten(text: str, letters: int) -> str:
    """Cut in the middle: names differ at their ends."""
    if len(text) <= letters:
        return text
    front = (letters - 1) * 2 // 3
    return f"{text[:front]}…{text[len(text) - (letters - 1 - front) :]}"


def size(length: int | None) -> str:
    return formatting.size(length, _NOTHING)


def number(value: float | None) -> str:
    return formatting.number(value, _NOTHING)


def share(part: float, whole: float) -> str:
    return formatting.percent(part / whole) if whole else _NOTHING
