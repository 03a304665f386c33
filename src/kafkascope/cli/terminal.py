"""Text for a terminal or a pipe: colours where they are wanted, lines no wider than the window, tables that fit."""

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from functools import cache

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}
# Prose is not pleasant to read beyond this.
WIDEST_PROSE = 100
NARROWEST = 40


@cache
def colours() -> bool:
    """NO_COLOR wins, then FORCE_COLOR, then whether a person is looking."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, *styles: str) -> str:
    if not text or not styles or not colours():
        return text
    codes = ";".join(_CODES[style] for style in styles)
    return f"\033[{codes}m{text}\033[0m"


@cache
def width() -> int:
    return max(NARROWEST, shutil.get_terminal_size((100, 24)).columns)


def heading(text: str) -> None:
    print()
    print(paint(text, "bold"))


def prose(text: str, indent: str = "", first: str | None = None) -> None:
    print(
        textwrap.fill(
            text,
            min(width(), WIDEST_PROSE + len(indent)),
            initial_indent=indent if first is None else first,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def table(rows: Sequence[tuple[str, ...]], head: tuple[str, ...] | None = None, indent: str = "  ") -> None:
    """Columns as wide as they must be; the last one wraps at the window's edge."""
    if not rows:
        return
    every = [head, *rows] if head else rows
    columns = len(every[0])
    widths = [max(len(row[c]) for row in every) for c in range(columns)]
    left = len(indent) + sum(widths[:-1]) + 2 * (columns - 1)
    room = max(20, width() - left)
    for number, row in enumerate(every):
        style = ("dim",) if head and number == 0 else ()
        front = indent + "".join(f"{cell:<{widths[c]}}  " for c, cell in enumerate(row[:-1]))
        parts = textwrap.wrap(row[-1], room, break_long_words=False, break_on_hyphens=False) or [""]
        if left > width() - 20:
            # Too narrow for columns: the last cell goes below.
            print(paint(front.rstrip(), *style))
            for part in textwrap.wrap(row[-1], max(20, width() - 6)):
                print(paint(f"      {part}", *style))
            continue
        print(paint((front + parts[0]).rstrip(), *style))
        for part in parts[1:]:
            print(paint(" " * left + part, *style))


def plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def note(text: str) -> None:
    """Progress and remarks go to stderr, so that what is piped stays clean."""
    print(text, file=sys.stderr)
