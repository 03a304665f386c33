"""Decides which fields may leave the decoder unchanged, and hides the others in a message's JSON. `data/secrets.txt`
classifies the fields; bytes without a classification are hidden (protocol note 56)."""

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any
from uuid import UUID

from kafkascope.codec.result import UNKNOWN_TAGS
from kafkascope.schema.files import lines
from kafkascope.schema.layouts.layout import LayoutField, layout

# The log that controllers replicate: its records contain settings and credentials. Its id is the same in every cluster.
METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = UUID(int=1)

# Kafka's ConfigResource.Type.
_RESOURCES = {"topic": 2, "broker": 4, "client_metrics": 16, "group": 32}
# Before the name of a setting that one listener has for itself.
LISTENER = "listener.name."


class Care(Enum):
    """`OPEN` is stored as it is, `HIDDEN` is replaced by null."""

    OPEN = "open"
    HIDDEN = "hidden"


@cache
def classified() -> dict[str, Care]:
    """By place: `AlterConfigsRequest.Resources.Configs.Value`."""
    known = {}
    for line in lines("secrets.txt"):
        care, place = line.split(" ")
        known[place] = Care(care)
    return known


def care_of(message: str, path: tuple[str, ...], type_: str) -> Care:
    """For a field by the catalog's names; bytes are hidden and everything else is open unless listed."""
    unlisted = Care.HIDDEN if type_ in ("bytes", "records") else Care.OPEN
    return classified().get(".".join((message, *path)), unlisted)


@cache
def open_settings() -> dict[int, frozenset[str]]:
    """By kind of resource: the settings that aren't passwords, so that a `ConfigRecord` may show their values."""
    named: dict[int, set[str]] = {}
    for line in lines("open_settings.txt"):
        resource, setting = line.split(" ")
        named.setdefault(_RESOURCES[resource], set()).add(setting)
    return {resource: frozenset(settings) for resource, settings in named.items()}


def is_metadata_log(value: Mapping[str, Any]) -> bool:
    """If a struct with topic data names the metadata log."""
    return any(type(item) in (str, UUID) and item in (METADATA_TOPIC, METADATA_TOPIC_ID) for item in value.values())


def hide(name: str, version: int, json_value: Any, release: str | None = None) -> Any:
    """A copy of a message in Kafka's JSON form, as a request log has it, with null for what the tables hide. Record
    data is null too; a name that the catalog doesn't know stays without its content; unknown tags keep number and
    size."""
    known = layout(name, version, release)
    return _hide_struct(known.message.name, known.fields, (), json_value)


def _hide_struct(message: str, fields: tuple[LayoutField, ...], above: tuple[str, ...], value: Any) -> Any:
    if not isinstance(value, dict):
        return None
    spelled = {spelling: field for field in fields for spelling in (*field.aliases, field.kafka_name, field.name)}
    sizes = {f"{field.name}SizeInBytes" for field in fields if field.type == "records"}
    written: dict[str, Any] = {}
    for key, content in value.items():
        field = spelled.get(key)
        if key == UNKNOWN_TAGS:
            written[key] = [_hide_tag(tag) for tag in content] if isinstance(content, list) else None
        elif field is not None:
            written[key] = _hide_field(message, field, above, content)
        else:
            written[key] = content if key in sizes and isinstance(content, int) else None
    return written


def _hide_field(message: str, field: LayoutField, above: tuple[str, ...], content: Any) -> Any:
    path = (*above, field.source.name)
    if field.type == "records" or care_of(message, path, field.type) is Care.HIDDEN:
        return None
    if field.type != "struct":
        return content
    if field.array and isinstance(content, list):
        return [_hide_struct(message, field.fields, path, item) for item in content]
    return _hide_struct(message, field.fields, path, content)


def _hide_tag(tag: Any) -> Any:
    match tag:
        case {"tag": int(number), "data": str(data)}:
            # Base64: four characters for three bytes, `=` for missing ones.
            return {"tag": number, "size": len(data) * 3 // 4 - data.count("=")}
    return None
