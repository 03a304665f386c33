"""Prints text to a terminal or a pipe: colours if wanted, and lines no wider than the window."""

import os
import re
import shutil
import sys
import textwrap
from contextlib import suppress
from functools import cache, lru_cache
from typing import TextIO
from unicodedata import category, east_asian_width

from kafkascope.formatting import printable

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
# Wider prose is hard to read.
WIDEST_PROSE = 100
NARROWEST = 40
_WORD = re.compile(r"(\s*)(\S+)")


@cache
def colours() -> bool:
    """NO_COLOR wins, then FORCE_COLOR, then whether the output is a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if forced := os.environ.get("FORCE_COLOR"):
        return forced.lower() not in ("0", "false")
    return takes_commands(sys.stdout)


def takes_commands(stream: TextIO) -> bool:
    """Whether it's a terminal that supports colours and clearing a line."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, *styles: str) -> str:
    if not text or not styles or not colours():
        return text
    codes = ";".join(_CODES[style] for style in styles)
    return f"\033[{codes}m{text}\033[0m"


@cache
def width() -> int:
    return max(NARROWEST, shutil.get_terminal_size((100, 24)).columns)


def notes_width() -> int:
    """The width for remarks: standard error may be the terminal while the output goes to a file or a pipe."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return max(NARROWEST, columns or width())


def heading(text: str) -> None:
    print()
    for line in wrap(text, width()):
        print(paint(line, "bold"))


def remark(text: str, indent: str = "") -> None:
    """Prints a dim remark, wrapped."""
    for line in wrap(text, width() - len(indent)):
        print(paint(indent + line, "dim"))


def title(text: str, facts: str = "") -> None:
    """Prints a bold name with dim facts after it, or below if they don't fit."""
    if cells(text) + 2 + cells(facts) <= width():
        print(paint(text, "bold") + paint(f"  {facts}" if facts else "", "dim"))
        return
    for line in wrap(text, width()):
        print(paint(line, "bold"))
    remark(facts, "  ")


def field_line(name: str, facts: str, indent: str) -> None:
    if len(indent) + cells(name) + 2 + cells(facts) <= width():
        print(f"{indent}{paint(name, 'bold', 'cyan')}  {paint(facts, 'dim')}")
        return
    print(f"{indent}{paint(name, 'bold', 'cyan')}")
    remark(facts, f"{indent}  ")


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


def wrap(text: str, room: int, *, keep_space: bool = False) -> list[str]:
    """Lines of words within these columns, at least one; a longer word gets its own line."""
    if cells(text) == len(text):
        lines = textwrap.wrap(
            text, room, break_long_words=False, break_on_hyphens=False, drop_whitespace=not keep_space
        )
        return lines or [""]
    # textwrap counts letters
    lines = [""]
    for space, word in _WORD.findall(text):
        line = lines[-1]
        if line and cells(line) + len(space) + cells(word) > room:
            lines.append(word)
        else:
            lines[-1] = line + space + word
    return lines


def folded(line: str, stream: TextIO, room: int) -> list[str]:
    """For a terminal, the line in parts that fit, indented after the first; elsewhere the line itself."""
    if not stream.isatty():
        return [line]
    return textwrap.wrap(line, room, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


@lru_cache(maxsize=4_096)
def cells(text: str) -> int:
    """The columns that a text takes: two for an East Asian letter or an emoji, none for a combining mark."""
    return len(text) if text.isascii() else sum(map(_cells, text))


@cache
def _cells(letter: str) -> int:
    if east_asian_width(letter) in ("W", "F"):
        return 2
    return 0 if category(letter) in ("Mn", "Me") else 1


def padded(text: str, room: int) -> str:
    return text + " " * (room - cells(text))


def cut(text: str, room: int) -> str:
    """The start of a text that fits in these columns."""
    if cells(text) <= room:
        return text
    for at, letter in enumerate(text):
        room -= _cells(letter)
        if room < 0:
            return text[:at]
    return text


def shortened(text: str, letters: int) -> str:
    shown = printable(text)
    return shown if cells(shown) <= letters else f"{cut(shown, letters - 1)}…"


def cut_middle(text: str, letters: int) -> str:
    """Client ids of one program differ at their ends: `consumer-bil…-17`."""
    shown = printable(text)
    front = (letters - 1) // 2
    if cells(shown) <= letters:
        return shown
    return f"{cut(shown, front)}…{cut(shown[::-1], letters - 1 - front)[::-1]}"


def note(text: str, end: str = "\n") -> None:
    """Prints progress and remarks to stderr, so that piped output stays clean. If stderr is full or gone, they are lost
    without an error."""
    try:
        print(text, end=end, file=sys.stderr, flush=True)
    except OSError:
        drop(sys.stderr)


def drop(stream: TextIO) -> None:
    """Discards what is still buffered: Python flushes at exit and would end with 120."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
