"""Parses Java .properties text as `java.util.Properties.load` does."""

import re
from collections.abc import Iterator

from kafkascope.errors import InputError

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEX = re.compile(r"[0-9a-fA-F]{4}")


def parse_properties(text: str, where: str) -> dict[str, str]:
    """The last value of a key wins."""
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        end = _end_of_key(line)
        value = line[end:].lstrip(_BLANK)
        if value[:1] in ("=", ":"):
            value = value[1:].lstrip(_BLANK)
        properties[_unescape(line[:end], where, number)] = _unescape(value, where, number)
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """(number of its first line, line without continuations); comments and empty lines are left out."""
    lines = re.split(r"\r\n|\n|\r", text)
    index = 0
    while index < len(lines):
        number, line = index + 1, lines[index].lstrip(_BLANK)
        index += 1
        if not line or line[0] in "#!":
            continue
        # an odd number of backslashes at the end: the line continues, and `#` starts no comment there
        while _goes_on(line) and index < len(lines) and line != "\\":
            line = line[:-1] + lines[index].lstrip(_BLANK)
            index += 1
        # only a backslash: the next line starts on its own
        if line != "\\" or index == len(lines):
            yield number, line[:-1] if _goes_on(line) else line


def _goes_on(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _end_of_key(line: str) -> int:
    """The first `=`, `:` or blank without a backslash before it."""
    position = 0
    while position < len(line):
        if line[position] == "\\":
            position += 2
            continue
        if line[position] in "=:" or line[position] in _BLANK:
            return position
        position += 1
    return len(line)


def _unescape(text: str, where: str, number: int) -> str:
    """A backslash before any other character is dropped."""
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        if text[position] != "\\" or position + 1 == len(text):
            out.append(text[position])
            position += 1
        elif text[position + 1] == "u":
            digits = _HEX.match(text, position + 2)
            if digits is None:
                raise InputError(f"{where} line {number}: \\u needs four hex digits")
            out.append(chr(int(digits[0], 16)))
            position += 6
        else:
            out.append(_ESCAPES.get(text[position + 1], text[position + 1]))
            position += 2
    # two escapes can be the surrogates of one character
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
