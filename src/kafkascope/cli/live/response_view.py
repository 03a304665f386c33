"""Prints a decoded value as JSON for people, with the meaning of codes and the topics of ids as comments."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from kafkascope.cli.output import json_text
from kafkascope.cli.terminal import paint
from kafkascope.codec.annotations.annotate import API_KEYS
from kafkascope.codec.json_form import uuid_text
from kafkascope.codec.result import UNKNOWN_TAGS
from kafkascope.formatting import printable
from kafkascope.limits import MAX_SHOWN_ITEMS
from kafkascope.schema.catalog import apis
from kafkascope.schema.errors.error_codes import error_name
from kafkascope.schema.errors.message_errors import is_error_field
from kafkascope.schema.layouts.layout import Layout, LayoutField
from kafkascope.schema.values import meaning, named_values


def print_value(
    response_layout: Layout, value: Mapping[str, Any], names: Mapping[UUID, str], *, full: bool = False
) -> None:
    """`names` are topics by id."""
    for line in _View(response_layout, names, full).struct(response_layout.fields, value, "", "", ()):
        print(line)


class _View:
    def __init__(self, response_layout: Layout, names: Mapping[UUID, str], full: bool) -> None:
        self.layout = response_layout
        self.names = names
        self.full = full

    def struct(
        self, fields: tuple[LayoutField, ...], value: Mapping[str, Any], lead: str, indent: str, place: tuple[str, ...]
    ) -> Iterator[str]:
        shown = [field for field in fields if field.tag is None or value[field.name] != field.default_value()]
        unknown = value.get(UNKNOWN_TAGS)
        if not shown and not unknown:
            yield f"{lead}{{}}"
            return
        yield f"{lead}{{"
        for number, field in enumerate(shown):
            comma = "," if number + 1 < len(shown) or unknown else ""
            key = f"{indent}  {paint(json.dumps(field.name), 'cyan')}: "
            inner = (*place, field.source.name)
            yield from _comma(self.field(field, value[field.name], key, f"{indent}  ", inner, value), comma)
        if unknown:
            tags = [{"tag": tag["tag"], "data": tag["data"].hex()} for tag in unknown]
            yield f'{indent}  "{UNKNOWN_TAGS}": {json.dumps(tags)}'
        yield f"{indent}}}"

    def field(
        self,
        field: LayoutField,
        content: Any,
        lead: str,
        indent: str,
        place: tuple[str, ...],
        siblings: Mapping[str, Any],
    ) -> Iterator[str]:
        if content is None or not field.array:
            yield from self.scalar_or_struct(field, content, lead, indent, place, siblings)
            return
        if not content:
            yield f"{lead}[]"
            return
        shown = content if self.full else content[:MAX_SHOWN_ITEMS]
        left = len(content) - len(shown)
        if field.type != "struct" and not left:
            remarks = [remark for item in shown if (remark := self.remark(field, item, place, siblings))]
            texts = ", ".join(_text(item) for item in shown)
            yield f"{lead}[{texts}]{_beside(', '.join(remarks))}"
            return
        yield f"{lead}["
        for number, item in enumerate(shown):
            comma = "," if number + 1 < len(content) else ""
            yield from _comma(self.scalar_or_struct(field, item, f"{indent}  ", f"{indent}  ", place, siblings), comma)
        if left:
            yield f"{indent}  {paint(f'… {left} more (--full shows all)', 'dim')}"
        yield f"{indent}]"

    def scalar_or_struct(
        self,
        field: LayoutField,
        content: Any,
        lead: str,
        indent: str,
        place: tuple[str, ...],
        siblings: Mapping[str, Any],
    ) -> Iterator[str]:
        if field.type == "struct" and content is not None:
            yield from self.struct(field.fields, content, lead, indent, place)
            return
        is_error = field.type == "int16" and is_error_field(field.name) and content
        text = paint(_text(content), "red") if is_error else _text(content)
        yield f"{lead}{text}{_beside(self.remark(field, content, place, siblings), 'red' if is_error else 'dim')}"

    def remark(self, field: LayoutField, content: Any, place: tuple[str, ...], siblings: Mapping[str, Any]) -> str:
        if isinstance(content, UUID):
            return self.names.get(content, "")
        if not isinstance(content, int) or isinstance(content, bool):
            return ""
        if (self.layout.message.name, place) in API_KEYS:
            return apis().get(content, "not in the catalog")
        if field.type == "int16" and is_error_field(field.name):
            return error_name(content)
        named = named_values(self.layout.message, place, self.layout.version)
        return (meaning(named, content, dict(siblings)) if named else None) or ""


# Marks the place of the comma on a line that ends in a comment.
_COMMENT = "\0"


def _beside(remark: str, style: str = "dim") -> str:
    return _COMMENT + "  " + paint(f"// {printable(remark)}", style) if remark else ""


def _comma(lines: Iterator[str], comma: str) -> Iterator[str]:
    """Puts a comma after the value of the last line, before its comment."""
    last: str | None = None
    for line in lines:
        if last is not None:
            yield last.replace(_COMMENT, "")
        last = line
    if last is not None:
        front, _, comment = last.partition(_COMMENT)
        yield f"{front}{comma}{comment}"


def _text(content: Any) -> str:
    if isinstance(content, UUID):
        return json.dumps(uuid_text(content))
    if isinstance(content, bytes):
        return f'"… {len(content)} bytes"' if content else '""'
    # Brokers pass on texts that clients choose: none may control the terminal.
    text = printable(json_text(content))
    return f'"{text}"' if text in ("NaN", "Infinity", "-Infinity") else text
