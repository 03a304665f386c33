"""Formats counts, sizes, durations, shares and lists of names for people, on a terminal as on a page."""

from collections.abc import Iterable, Mapping, Sequence

UNKNOWN_VALUE = "?"


def count(number: float, noun: str, plural: str | None = None) -> str:
    """`1 record`, `1,200 records`."""
    return f"{number:,.0f} {noun if number == 1 else plural or noun + 's'}"


def number(value: float | None, unknown: str = UNKNOWN_VALUE) -> str:
    """`1,234`."""
    return unknown if value is None else f"{value:,.0f}"


def size(length: int | None, unknown: str = "") -> str:
    """`512 B`, `4.2 kB`, `120 MB`."""
    if length is None:
        return unknown
    if length < 1_000:
        return f"{length} B"
    value, units = length / 1_000, ["TB", "GB", "MB", "kB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1_000
        units.pop()
    return f"{value:.{1 if value < 99.95 else 0}f} {units[-1]}"


def span(milliseconds: float) -> str:
    """`820 ms`, `3.3 s`, `2 min 5 s`, `1 h 5 min`."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 59_950:
        return f"{milliseconds / 1000:.1f}".removesuffix(".0") + " s"
    seconds = round(milliseconds / 1000)
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s".removesuffix(" 0 s")
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min".removesuffix(" 0 min")


def latency(microseconds: int | None) -> str:
    """Three significant digits, for columns of a table: `87 µs`, `4.21 ms`, `1.50 s`."""
    if microseconds is None:
        return ""
    if microseconds < 1_000:
        return f"{microseconds} µs"
    unit, value = "ms", microseconds / 1_000
    if value >= 999.5:
        unit, value = "s", microseconds / 1_000_000
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"


def percent(share: float) -> str:
    """`25 %`, `0.4 %`; `0 %` only for 0."""
    if 0 < share < 0.001:
        return "less than 0.1 %"
    return f"{share * 100:.{0 if share >= 0.1 else 1}f}".removesuffix(".0") + " %"


def file_name(path: str) -> str:
    """`night/a.pcap` for `s3://bucket/2026/night/a.pcap`: many files have the same name in folders of their own."""
    return "/".join(part for part in path.rstrip("/").rsplit("/", 2)[-2:] if part and not part.endswith(":")) or path


def join_names(names: Sequence[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def close_names(name: str, names: Iterable[str] | Mapping[str, str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """What `name` may be a misspelling of, nearest first. A mapping's keys are compared, its values returned."""
    # difflib costs 10 ms to import: only a mistake pays for it.
    from difflib import get_close_matches

    spelled = names if isinstance(names, Mapping) else {name: name for name in names}
    return list(dict.fromkeys(spelled[near] for near in get_close_matches(name, spelled, most, cutoff)))


def did_you_mean(near: Sequence[str], otherwise: str = "") -> str:
    """The end of an error about an unknown name: `; did you mean a or b?`, else `otherwise`."""
    return f"; did you mean {join_names(near, 'or')}?" if near else f"; {otherwise}" if otherwise else ""


def name_some(names: Iterable[str], left_out: int) -> str:
    """`a, b and 4 more`."""
    return ", ".join(names) + (f" and {left_out:,} more" if left_out > 0 else "")


def first_names(names: Sequence[str], most: int) -> str:
    """Like `name_some`, with at most `most` names."""
    return name_some(names[:most], len(names) - most)


def printable(text: str) -> str:
    """Replaces characters that control a terminal or a page. The length stays the same."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
