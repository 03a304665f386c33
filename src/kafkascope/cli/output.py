"""Prints JSON for other programs, with everything escaped that would control a terminal."""

import json
import re
import sys
from collections.abc import Collection
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

from kafkascope.times import iso

# Characters that a terminal reads as commands, line breaks or text directions and that JSON doesn't escape; and lone
# surrogates, which file names that aren't text have and no encoding can write.
_STEERING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def json_text(value: Any, indent: int | None = None) -> str:
    """Characters stay as they are if standard output can write all of them, else they are escaped."""
    text = json.dumps(value, indent=indent, ensure_ascii="utf" not in (sys.stdout.encoding or "utf-8").lower())
    return text if text.isascii() and "\x7f" not in text else _STEERING.sub(_escaped, text)


def _escaped(letter: re.Match[str]) -> str:
    return f"\\u{ord(letter[0]):04x}"


def plain(value: Any, hidden: Collection[str] = ()) -> Any:
    """Converts to JSON: dataclasses by field except hidden ones, tuples to lists, times to ISO 8601."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(getattr(value, field.name), hidden) for field in fields(value) if field.name not in hidden
        }
    if isinstance(value, tuple | list):
        return [plain(item, hidden) for item in value]
    if isinstance(value, dict):
        return {name: plain(item, hidden) for name, item in value.items()}
    return iso(value) if isinstance(value, datetime) else value


def print_json(value: Any) -> None:
    sys.stdout.write(json_text(value, indent=2))
    sys.stdout.write("\n")
