"""Splits a JSON value into lines as `json.dumps(indent=2)` prints them, each with the path of its value."""

import json
from collections.abc import Iterator
from typing import Any


def json_lines(
    value: Any, path: str = "", indent: int = 0, lead: str = "", tail: str = ""
) -> Iterator[tuple[str, str]]:
    """(text, path); the path is that of `Span`, empty for lines that close something."""
    margin = "  " * indent
    if not isinstance(value, (dict, list)) or not value:
        yield f"{margin}{lead}{json.dumps(value, ensure_ascii=False)}{tail}", path
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield f"{margin}{lead}{opening}", path
    last = len(value) - 1
    if isinstance(value, dict):
        for at, (name, item) in enumerate(value.items()):
            inner = f"{path}.{name}" if path else name
            yield from json_lines(item, inner, indent + 1, f"{json.dumps(name)}: ", "," if at < last else "")
    else:
        for at, item in enumerate(value):
            yield from json_lines(item, f"{path}[{at}]", indent + 1, "", "," if at < last else "")
    yield f"{margin}{closing}{tail}", ""
