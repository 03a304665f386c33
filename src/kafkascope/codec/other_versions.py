"""Decides whether the JSON of a field that its message has only in other versions equals that field's default."""

from typing import Any

from kafkascope.schema.layouts.layout import camel_case
from kafkascope.schema.model import Field

_ZERO_UUIDS = ("A" * 22, "00000000-0000-0000-0000-000000000000")


def says_nothing(name: str, content: Any, fields: tuple[Field, ...]) -> bool:
    """If Java's reader drops it: it accepts every field of a message, and only a value other than the default fails
    when it's written in a version without the field. Null is always dropped."""
    field = next((field for field in fields if name in _spellings(field)), None)
    return field is not None and (content is None or _is_default(field, content))


def _spellings(field: Field) -> set[str]:
    names = (field.name, *(earlier for earlier, _ in field.was))
    return {spelling for name in names for spelling in (name, camel_case(name))}


def _is_default(field: Field, content: Any) -> bool:
    if field.default == "null":
        return False
    if field.array:
        return bool(content == [])
    if field.is_struct:
        return isinstance(content, dict) and all(says_nothing(*item, field.fields) for item in content.items())
    if field.type == "bool":
        return content is (field.default == "true")
    if field.type == "uuid":
        return content in _ZERO_UUIDS
    if field.type in ("string", "bytes", "records"):
        return bool(content == (field.default or ""))
    # true == 1 in Python, but isn't a number in JSON
    return not isinstance(content, bool) and bool(content == float(field.default or 0))
