"""Rows of cells in, a table out that fits the window: numbers to the right, colours by cell, the last column wrapped.

Where the window is too narrow for the columns, each row becomes a paragraph of `name value` pairs.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from kafkascope.cli.terminal import paint, width


@dataclass(frozen=True, slots=True)
class Cell:
    """A text with the styles it is painted in."""

    text: str
    styles: tuple[str, ...] = ()


Content = Cell | str | int | None
# A last column narrower than this is not pleasant to read.
LEAST_LAST = 12
UNKNOWN = "?"


def bad(text: str) -> Cell:
    return Cell(text, ("red",))


def odd(text: str) -> Cell:
    return Cell(text, ("yellow",))


def good(text: str) -> Cell:
    return Cell(text, ("green",))


def number(value: int | None, unknown: str = UNKNOWN) -> str:
    """`1,234`; what is not known says so."""
    return unknown if value is None else f"{value:,}"


def grid(head: Sequence[str], rows: Sequence[Sequence[Content]], right: str = "", indent: str = "  ") -> None:
    """`right` names the columns of numbers, by their heads, apart by commas."""
    if not rows:
        return
    cells = [[_cell(content) for content in row] for row in rows]
    numeric = set(right.split(",")) if right else set()
    # a column that says nothing in any row is left out
    kept = [at for at in range(len(head)) if any(row[at].text for row in cells)]
    names = [head[at] for at in kept]
    cells = [[row[at] for at in kept] for row in cells]
    widths = [max(len(names[at]), *(len(row[at].text) for row in cells)) for at in range(len(names))]
    left = len(indent) + sum(widths[:-1]) + 2 * (len(widths) - 1)
    longest = max((len(word) for row in cells for word in row[-1].text.split()), default=0)
    if left + max(min(widths[-1], LEAST_LAST), longest, len(names[-1])) > width():
        _paragraphs(names, cells, indent)
        return
    aligned = [name in numeric for name in names]
    _line([Cell(name, ("dim",)) for name in names], widths, aligned, indent, left)
    for row in cells:
        _line(row, widths, aligned, indent, left)


def _line(row: Sequence[Cell], widths: Sequence[int], aligned: Sequence[bool], indent: str, left: int) -> None:
    front = indent
    for cell, wide, numeric in zip(row[:-1], widths[:-1], aligned[:-1], strict=True):
        space = " " * (wide - len(cell.text))
        painted = paint(cell.text, *cell.styles)
        front += f"{space}{painted}  " if numeric else f"{painted}{space}  "
    last = row[-1]
    text = f"{last.text:>{widths[-1]}}" if aligned[-1] else last.text
    parts = textwrap.wrap(
        text, max(width() - left, 1), break_long_words=False, break_on_hyphens=False, drop_whitespace=not aligned[-1]
    ) or [""]
    print((front + paint(parts[0], *last.styles)).rstrip())
    for part in parts[1:]:
        print(" " * left + paint(part, *last.styles))


def _paragraphs(names: Sequence[str], rows: Sequence[Sequence[Cell]], indent: str) -> None:
    for row in rows:
        words = [f"{name} {cell.text}".strip() for name, cell in zip(names, row, strict=True) if cell.text]
        room = max(width() - len(indent) - 2, 20)
        lines = textwrap.wrap("  ".join(words), room, break_long_words=False, break_on_hyphens=False)
        for at, line in enumerate(lines):
            print(indent + ("" if at == 0 else "  ") + line)


def _cell(content: Content) -> Cell:
    if isinstance(content, Cell):
        return content
    return Cell("" if content is None else str(content))


def partitions(numbers: Sequence[int]) -> str:
    """`0-3, 7`: runs are short."""
    from kafkascope.schema.versions import format_versions

    return format_versions(sorted(numbers)).replace(", ", ",")
