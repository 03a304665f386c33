"""Parses and formats version ranges as Kafka's definitions write them (`0+`, `2-7`, `3`, `none`)."""

from collections.abc import Iterable

# A definition's `4+` has no end; versions are int16 and no message comes near this.
_OPEN_END = 32767


def parse_range(text: str | None) -> tuple[int, int] | None:
    """`4+` is (4, OPEN_END), `none` and absence are None."""
    if text is None or text == "none":
        return None
    text = str(text)
    if text.endswith("+"):
        return int(text[:-1]), _OPEN_END
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def within(text: str | None, versions: Iterable[int]) -> frozenset[int]:
    """Those of `versions` that the range names."""
    bounds = parse_range(text)
    if bounds is None:
        return frozenset()
    return frozenset(v for v in versions if bounds[0] <= v <= bounds[1])


def format_set(versions: Iterable[int], newest: int) -> str:
    """`{0,1,4,5}` with newest 5 is `0-1,4+`."""
    parts: list[str] = []
    ordered = sorted(versions)
    index = 0
    while index < len(ordered):
        start = end = ordered[index]
        while index + 1 < len(ordered) and ordered[index + 1] == end + 1:
            index += 1
            end = ordered[index]
        index += 1
        if end == newest:
            parts.append(f"{start}+")
        else:
            parts.append(str(start) if start == end else f"{start}-{end}")
    return ",".join(parts)
