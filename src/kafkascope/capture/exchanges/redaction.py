"""Hides what a decoded frame must not show: credentials always, record data unless requested."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kafkascope.codec.annotations.annotate import Annotation
from kafkascope.codec.json_form import to_json
from kafkascope.schema.layouts.layout import LayoutField, layout

if TYPE_CHECKING:
    from kafkascope.codec.frame import DecodedFrame
    from kafkascope.codec.result import Decoded

_INDEX = re.compile(r"\[\d+\]")
_UNKNOWN_TAG = re.compile(r"(?:.*\.)?tag\d+")
_SECRET, _RECORDS = "secret", "records"


def hidden_annotations(frame: "DecodedFrame", rows: list[Annotation], *, records: bool) -> Iterator[Annotation]:
    """The same rows, but a hidden one shows the number of its bytes instead of the bytes."""
    hidden = hidden_fields(frame.body.name, frame.body.version) if frame.body is not None else {}
    for row in rows:
        path = _INDEX.sub("", row.path)
        kind = hidden.get(path)
        if row.label == "unread" or _UNKNOWN_TAG.fullmatch(path):
            kind = _SECRET  # not classified
        if row.start < frame.body_at or row.end == row.start or kind is None or (kind == _RECORDS and records):
            yield row
            continue
        count = row.end - row.start
        yield replace(row, end=row.start, value=f"{count} {'byte' if count == 1 else 'bytes'}, hidden", remark=None)


@lru_cache(maxsize=64)
def hidden_fields(name: str, version: int) -> dict[str, str]:
    """Path without indexes to `_SECRET`, or to `_RECORDS` if the content may be requested."""
    from kafkascope.columnar.secrets import Care, care_of

    hidden: dict[str, str] = {}

    def visit(fields: tuple[LayoutField, ...], prefix: str, above: tuple[str, ...]) -> None:
        for field in fields:
            place = (*above, field.source.name)
            path = f"{prefix}{field.name}"
            if care_of(name, place, field.type) is Care.HIDDEN:
                hidden[path] = _SECRET
            elif field.type == "records":
                hidden[path] = _RECORDS
            visit(field.fields, f"{path}.", place)

    visit(layout(name, version).fields, "", ())
    return hidden


def may_show_records(body: "Decoded", topics: tuple[str, ...]) -> bool:
    """Records of the metadata log are never shown: they hold credentials and settings (protocol note 56)."""
    from kafkascope.columnar.secrets import METADATA_TOPIC, is_metadata_log

    hidden = hidden_fields(body.name, body.version)
    # The topics that the exchange is about, and those that the message itself names.
    structs = [item for content in body.value.values() if isinstance(content, list) for item in content]
    named = any(isinstance(item, dict) and is_metadata_log(item) for item in structs)
    return METADATA_TOPIC not in topics and not named and _RECORDS in hidden.values()


def hidden_json(body: "Decoded") -> Any:
    """Kafka's JSON form with null in place of secrets, and sizes in place of record data."""
    from kafkascope.columnar.secrets import hide

    return hide(body.name, body.version, to_json(body.name, body.version, body.value, records="size"))
