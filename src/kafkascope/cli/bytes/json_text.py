"""Parses JSON text. An `InputError` names the line and column, or a key that occurs twice, but never shows the text."""

import json
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from typing import Any

from kafkascope.cli.bytes.input import hint_at_file, read_argument
from kafkascope.errors import InputError
from kafkascope.schema.names import clip


def read_json(argument: str) -> Any:
    """The text of an argument: JSON, `@file` or `-`. It's UTF-8 unless a byte order mark names another encoding."""
    content = read_argument(argument)
    if isinstance(content, str):
        with hint_at_file(argument):
            return parse_json(content)
    coding = "UTF-16" if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "UTF-8"
    try:
        text = content.decode(coding)
    except UnicodeDecodeError as error:
        raise InputError(f"{argument.removeprefix('@')} isn't {coding} text (offset {error.start})") from None
    return parse_json(text)


def parse_json(text: str) -> Any:
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise InputError("the JSON is empty")
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise InputError(f"not valid JSON: {error.msg.lower()} (line {error.lineno}, column {error.colno})") from None
    except ValueError:
        raise InputError("not the JSON of a Kafka message: a number has thousands of digits") from None
    except RecursionError:
        raise InputError("not the JSON of a Kafka message: it's nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Python itself would silently keep only the last of two equal keys."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"not the JSON of a Kafka message: {clip(twice)} occurs twice in one object")
    return fields
