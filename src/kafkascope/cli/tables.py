"""Prints tables that fit the window: columns as wide as their widest cell, the last one wrapped.

If the window is too narrow for the columns, each row becomes a paragraph."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kafkascope.cli.terminal import cells, padded, paint, width, wrap


@dataclass(frozen=True, slots=True)
class Cell:
    """A text with its styles."""

    text: str
    styles: tuple[str, ...] = ()


Content = Cell | str | int | None
# If the last column would be narrower than this, rows become paragraphs: for names and numbers, and for prose.
_LEAST_LAST, _LEAST_LAST_OF_PROSE = 12, 24


def bad(text: str) -> Cell:
    return Cell(text, ("red",))


def odd(text: str) -> Cell:
    return Cell(text, ("yellow",))


def good(text: str) -> Cell:
    return Cell(text, ("green",))


def table(
    rows: Sequence[tuple[str, ...]],
    head: tuple[str, ...] | None = None,
    indent: str = "  ",
    right: Collection[int] = (),
) -> None:
    """Prints texts; the last cell of a row is prose. `right` are the columns of numbers. In a narrow window the cells
    of a row are below each other."""
    if not rows:
        return
    every = [[Cell(text) for text in row] for row in ([head, *rows] if head else rows)]
    # At least 1, even if all cells are empty, since wrapping needs room.
    layout = _Layout(every, indent, right, _LEAST_LAST_OF_PROSE, 1)
    for at, row in enumerate(every):
        style = ("dim",) if head and at == 0 else ()
        text = "  ".join(cell.text for cell in row if cell.text.strip())
        lines = layout.lines(row) if layout.fits else _paragraph(text, indent, "    ", width() - 4 - len(indent))
        for line in lines:
            print(paint(line, *style))


def grid(head: Sequence[str], rows: Sequence[Sequence[Content]], right: str = "", indent: str = "  ") -> None:
    """Prints coloured cells under dim names; `right` names the columns of numbers, separated by commas. Empty columns
    are left out. In a narrow window a row becomes pairs of name and value."""
    if not rows:
        return
    all_cells = [[_cell(content) for content in row] for row in rows]
    kept = [at for at in range(len(head)) if any(row[at].text for row in all_cells)]
    names = [head[at] for at in kept]
    body = [[row[at] for at in kept] for row in all_cells]
    numeric = [at for at, name in enumerate(names) if name in right.split(",")] if right else []
    heads = [Cell(name, ("dim",)) for name in names]
    layout = _Layout([heads, *body], indent, numeric, _LEAST_LAST, cells(names[-1]), in_rows=body)
    if layout.fits:
        for row in (heads, *body):
            print("\n".join(layout.lines(row)))
        return
    for row in body:
        words = [f"{name} {cell.text}".strip() for name, cell in zip(names, row, strict=True) if cell.text]
        if words:
            print("\n".join(_paragraph("  ".join(words), indent, "  ", max(width() - len(indent) - 2, 20))))


class _Layout:
    """The width of each column of these rows, and whether they fit the window."""

    def __init__(
        self,
        rows: Sequence[Sequence[Cell]],
        indent: str,
        right: Collection[int],
        least: int,
        needed: int,
        in_rows: Sequence[Sequence[Cell]] | None = None,
    ) -> None:
        self._indent = indent
        self._widths = [max(cells(row[at].text) for row in rows) for at in range(len(rows[0]))]
        self._right = [at in right for at in range(len(rows[0]))]
        self._left = len(indent) + sum(self._widths[:-1]) + 2 * (len(self._widths) - 1)
        words = (word for row in (in_rows or rows) for word in row[-1].text.split())
        longest = max(map(cells, words), default=0)
        self.fits = self._left + max(min(self._widths[-1], least), longest, needed) <= width()

    def lines(self, row: Sequence[Cell]) -> list[str]:
        front = self._indent
        for cell, room, right in zip(row[:-1], self._widths[:-1], self._right[:-1], strict=True):
            space = padded("", room - cells(cell.text))
            painted = paint(cell.text, *cell.styles)
            front += f"{space}{painted}  " if right else f"{painted}{space}  "
        last, right = row[-1], self._right[-1]
        space = padded("", self._widths[-1] - cells(last.text)) if right else ""
        parts = wrap(space + last.text, max(width() - self._left, 1), keep_space=right)
        first = (front + paint(parts[0], *last.styles)).rstrip()
        return [first, *(" " * self._left + paint(part, *last.styles) for part in parts[1:])]


def _paragraph(text: str, indent: str, further: str, room: int) -> list[str]:
    return [(indent if at == 0 else indent + further) + line for at, line in enumerate(wrap(text, room))]


def _cell(content: Content) -> Cell:
    if isinstance(content, Cell):
        return content
    return Cell("" if content is None else str(content))
