"""Prints tables that fit the window: columns as wide as their widest cell, the last one wrapped.

If the window is too narrow for the columns, each row becomes a paragraph."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kafkascope.cli.terminal import cells, cut_middle, padded, paint, width, wrap


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


def grid(
    head: Sequence[str],
    rows: Sequence[Sequence[Content]],
    right: str = "",
    indent: str = "  ",
    dropped: Sequence[str] = (),
    least: int | None = None,
) -> None:
    """Prints coloured cells under dim names; `right` names the columns of numbers, separated by commas. Empty columns
    are left out. In a narrow window the columns in `dropped` are left out, in this order, until the first column has
    room for `least` letters, and its texts are cut in the middle. If that isn't enough, a row becomes pairs of name and
    value."""
    if not rows:
        return
    columns = [[Cell(name, ("dim",)), *map(_cell, column)] for name, *column in zip(head, *rows, strict=True)]
    columns = [column for column in columns if any(cell.text for cell in column[1:])]
    if least is not None:
        _narrow(columns, dropped, least, width() - len(indent))
    heads, *body = zip(*columns, strict=True)
    names = [cell.text for cell in heads]
    numeric = [at for at, name in enumerate(names) if name in right.split(",")] if right else []
    layout = _Layout([heads, *body], indent, numeric, _LEAST_LAST, cells(names[-1]), in_rows=body)
    if layout.fits:
        for row in (heads, *body):
            print("\n".join(layout.lines(row)))
        return
    for row in body:
        words = [f"{name} {cell.text}".strip() for name, cell in zip(names, row, strict=True) if cell.text]
        if words:
            print("\n".join(_paragraph("  ".join(words), indent, "  ", max(width() - len(indent) - 2, 20))))


def _narrow(columns: list[list[Cell]], dropped: Sequence[str], least: int, room: int) -> None:
    def left() -> int:
        return room - sum(2 + _widest(column) for column in columns[1:])

    longest = _widest(columns[0])
    for name in dropped:
        if left() >= min(longest, least):
            break
        columns[:] = [column for column in columns if column[0].text != name]
    if longest > left():
        columns[0] = [Cell(cut_middle(cell.text, max(left(), 1)), cell.styles) for cell in columns[0]]


def _widest(column: Sequence[Cell]) -> int:
    return max(cells(cell.text) for cell in column)


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
        self._widths = [_widest(column) for column in zip(*rows, strict=True)]
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
