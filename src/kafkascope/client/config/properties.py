"""The text of a Java .properties file in, its keys and values in order out, as `java.util.Properties.load` reads it."""

import re
from collections.abc import Iterator

from kafkascope.errors import InputError

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEX = re.compile(r"[0-9a-fA-F]{4}")


def parse_properties(text: str, where: str) -> dict[str, str]:
    """The last one of a key holds."""
    found: dict[str, str] = {}
    for number, line in _logical_lines(text):
        end = _end_of_key(line)
        rest = line[end:].lstrip(_BLANK)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANK)
        found[_unescape(line[:end], where, number)] = _unescape(rest, where, number)
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """(number of its first line, line without continuations); comments and empty lines are left out."""
    lines = re.split(r"\r\n|\n|\r", text)
    at = 0
    while at < len(lines):
        number, line = at + 1, lines[at].lstrip(_BLANK)
        at += 1
        if not line or line[0] in "#!":
            continue
        # an odd number of backslashes at the end: the line goes on, and `#` starts no comment there
        while _goes_on(line) and at < len(lines) and line != "\\":
            line = line[:-1] + lines[at].lstrip(_BLANK)
            at += 1
        # nothing but a backslash: what follows starts a line of its own
        if line != "\\" or at == len(lines):
            yield number, line[:-1] if _goes_on(line) else line


def _goes_on(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _end_of_key(line: str) -> int:
    """The first `=`, `:` or blank without a backslash in front."""
    at = 0
    while at < len(line):
        if line[at] == "\\":
            at += 2
            continue
        if line[at] in "=:" or line[at] in _BLANK:
            return at
        at += 1
    return len(line)


def _unescape(text: str, where: str, number: int) -> str:
    """A backslash before any other character is dropped."""
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "\\" or at + 1 == len(text):
            out.append(text[at])
            at += 1
        elif text[at + 1] == "u":
            digits = _HEX.match(text, at + 2)
            if digits is None:
                raise InputError(f"{where} line {number}: \\u wants four hex digits")
            out.append(chr(int(digits[0], 16)))
            at += 6
        else:
            out.append(_ESCAPES.get(text[at + 1], text[at + 1]))
            at += 2
    # two escapes can be the halves of one character
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
