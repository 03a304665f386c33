"""Prints JSON for other programs, with everything escaped that would steer a terminal."""

import json
import re
import sys
from typing import Any

# What a terminal takes for commands, line breaks or directions of text, and JSON itself does not escape; and halves of
# letters, which no encoding has: file names that are no text hold them.
_STEERING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def json_text(value: Any, indent: int | None = None) -> str:
    """Letters as they are where standard output can write all of them, escaped where not."""
    text = json.dumps(value, indent=indent, ensure_ascii="utf" not in (sys.stdout.encoding or "utf-8").lower())
    return text if text.isascii() and "\x7f" not in text else _STEERING.sub(_escaped, text)


def _escaped(letter: re.Match[str]) -> str:
    return f"\\u{ord(letter[0]):04x}"


def print_json(value: Any) -> None:
    sys.stdout.write(json_text(value, indent=2))
    sys.stdout.write("\n")
