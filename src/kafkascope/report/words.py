"""Formats numbers, sizes and UTC times for people."""

from datetime import UTC, datetime, timedelta

from kafkascope.health.findings.words import span

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNKNOWN_TEXT = "unknown"


def moment_of(microseconds: int) -> datetime | None:
    """None for what no calendar has."""
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None


def iso(microseconds: int | None) -> str | None:
    moment = None if microseconds is None else moment_of(microseconds)
    return None if moment is None else moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def day(microseconds: int) -> str:
    """`15 Nov 2026`."""
    moment = moment_of(microseconds)
    return UNKNOWN_TEXT if moment is None else f"{moment.day} {moment:%b %Y}"


def clock(microseconds: int | None, unit_us: int = 1_000) -> str:
    """`12:07:29.363`, `12:07:29`, `12:07`: as fine as the unit."""
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
    """`15 Nov 2026 12:07:26.363 – 12:07:29.363`; the day once where both are of it."""
    if first is None or last is None:
        return when(first if last is None else last, unit_us)
    if when(first, unit_us) == when(last, unit_us):
        return when(first, unit_us)
    return f"{when(first, unit_us)} – {clock(last, unit_us) if day(first) == day(last) else when(last, unit_us)}"


def lasting(microseconds: int | None) -> str:
    """`87 µs`, `4.2 ms`, `3.3 s`."""
    if microseconds is None:
        return "–"
    if microseconds < 1_000:
        return f"{microseconds} µs" if microseconds else "0 s"
    if microseconds < 10_000:
        return f"{microseconds / 1000:.1f}".removesuffix(".0") + " ms"
    return span(microseconds / 1000)


def size(count: int | None) -> str:
    if count is None:
        return "–"
    if count < 1_000:
        return f"{count} B"
    value = float(count)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1_000
        if value < 999.5 or unit == "TB":
            break
    return f"{value:.{1 if value < 99.95 else 0}f} {unit}"


def number(count: float | None) -> str:
    return "–" if count is None else f"{count:,.0f}"


def share(part: float, whole: float) -> str:
    """`12 %`; never `0 %` of what is there."""
    if not whole:
        return "–"
    if 0 < part / whole < 0.001:
        return "< 0.1 %"
    digits = 0 if part / whole >= 0.1 or not part else 1
    return f"{100 * part / whole:.{digits}f} %"


def shorten(text: str, letters: int) -> str:
    """The middle goes: names differ at their ends."""
    if len(text) <= letters:
        return text
    front = (letters - 1) * 2 // 3
    return f"{text[:front]}…{text[len(text) - (letters - 1 - front) :]}"


def printable(text: str) -> str:
    """What a terminal or a page would obey rather than show is replaced."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
