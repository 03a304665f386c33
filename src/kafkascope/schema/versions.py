"""Parses and formats version ranges of the catalog, such as `0-3,5+`."""

from dataclasses import dataclass
from functools import cache

# `5+` has no end; versions are int16.
_OPEN_END = 32_767


@dataclass(frozen=True, slots=True)
class Versions:
    """A set of versions; `text` is how the catalog writes it."""

    text: str
    ranges: tuple[tuple[int, int], ...]

    def __contains__(self, version: int) -> bool:
        return any(first <= version <= last for first, last in self.ranges)

    def __bool__(self) -> bool:
        return bool(self.ranges)


@cache
def parse_versions(text: str) -> Versions:
    if text in ("", "none"):
        return Versions("none", ())
    ranges = []
    for part in text.split(","):
        if part.endswith("+"):
            ranges.append((int(part[:-1]), _OPEN_END))
        else:
            first, _, last = part.partition("-")
            ranges.append((int(first), int(last or first)))
    return Versions(text, tuple(ranges))


def format_versions(versions: list[int]) -> str:
    """`[0, 1, 2, 5]` is `0-2, 5`."""
    parts: list[str] = []
    ordered = sorted(versions)
    start = 0
    for index in range(len(ordered)):
        if index + 1 == len(ordered) or ordered[index + 1] != ordered[index] + 1:
            first, last = ordered[start], ordered[index]
            parts.append(str(first) if first == last else f"{first}-{last}")
            start = index + 1
    return ", ".join(parts)
