"""Splits a JSON value into lines as `json.dumps(indent=2)` prints them, each with the path of its value."""

import json
import re
from collections.abc import Iterator
from typing import Any

from kafkascope.schema.errors.error_codes import error_codes

_ERROR = re.compile(r"error_?code", re.IGNORECASE)


def json_lines(
    value: Any, path: str = "", indent: int = 0, lead: str = "", tail: str = ""
) -> Iterator[tuple[str, str]]:
    """(text, path) with the path of `Span`; empty for lines with a closing bracket."""
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


def error_in(text: str, path: str) -> str | None:
    """The name of the error in a line of JSON with an error code other than 0."""
    if not _ERROR.search(path.rpartition(".")[2]):
        return None
    code = text.rpartition(":")[2].strip(" ,")
    known = error_codes().get(int(code)) if re.fullmatch("-?[0-9]+", code) else None
    return known.name if known and known.code else None
