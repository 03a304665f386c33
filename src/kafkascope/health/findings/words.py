"""Formats counts, times and shares for the sentences of findings."""

from collections.abc import Mapping


def count(number: float, noun: str, plural: str | None = None) -> str:
    """`1 record`, `1,200 records`."""
    return f"{number:,.0f} {noun if number == 1 else plural or noun + 's'}"


def times(number: float) -> str:
    """`once`, `twice`, `3 times`."""
    return {1: "once", 2: "twice"}.get(int(number), f"{number:,.0f} times")


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


def percent(share: float) -> str:
    """`25 %`, `0.4 %`; never `0 %` of something that is there."""
    if 0 < share < 0.001:
        return "less than 0.1 %"
    return f"{share * 100:.{0 if share >= 0.1 else 1}f}".removesuffix(".0") + " %"


def tally(counts: Mapping[str, float], most: int = 5) -> str:
    """`steady 4, renewer 1 and 3 more`: the largest first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    text = ", ".join(f"{name} {number:,.0f}" for name, number in ordered[:most])
    return text + (f" and {len(ordered) - most} more" if len(ordered) > most else "")


def name_counts(counts: Mapping[str, float], most: int = 5) -> str:
    """As `tally`; of one name, whose number the sentence has already, the name."""
    return next(iter(counts)) if len(counts) == 1 else tally(counts, most)


def names(counts: Mapping[str, float], most: int = 5) -> str:
    """`0_1, 0_2 and 4 more`, in the order of the alphabet."""
    ordered = sorted(counts)
    return ", ".join(ordered[:most]) + (f" and {len(ordered) - most} more" if len(ordered) > most else "")
