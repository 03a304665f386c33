"""Converts topic names to ids and ids to names in requests and responses.

A name in place of an id gets a placeholder id until the cluster is asked, so that a request can be checked and
described without a connection."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, UUID, uuid5

from kafkascope.codec.json_form import parse_uuid, uuid_text
from kafkascope.errors import NotFoundError, UsageError
from kafkascope.formatting import close_names, did_you_mean
from kafkascope.schema.layouts.layout import LayoutField, layout
from kafkascope.schema.names import clip

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

_NO_ID = UUID(int=0)
# Fields in which users name a topic, whatever the version's field is called.
_SPELLINGS = ("topic", "topicName", "topicId", "name")
# The first version of Metadata that takes topic ids (KIP-516).
_METADATA, _WITH_IDS = 3, 12


def _is_topic_id(field: LayoutField) -> bool:
    return field.type == "uuid" and field.source.name == "TopicId"


def _is_topic_name(field: LayoutField) -> bool:
    return field.type == "string" and field.source.entity == "topicName"


def with_placeholders(api: str, version: int, content: Any) -> tuple[Any, dict[UUID, str]]:
    """The JSON with placeholder ids for names, and the name that each replaces."""
    placeholders: dict[UUID, str] = {}
    return _with_placeholders(layout(f"{api}Request", version).fields, content, placeholders), placeholders


def _with_placeholders(fields: tuple[LayoutField, ...], raw: Any, placeholders: dict[UUID, str]) -> Any:
    if not isinstance(raw, dict):
        return raw
    spellings = {spelling: field for field in fields for spelling in (field.kafka_name, *field.aliases)}
    spellings |= {field.name: field for field in fields}
    topics = [field for field in fields if not field.array and (_is_topic_id(field) or _is_topic_name(field))]
    written: dict[str, Any] = {}
    for key, content in raw.items():
        field = spellings.get(key)
        if field is None and key in _SPELLINGS and len(topics) == 1 and topics[0].name not in raw:
            field, key = topics[0], topics[0].name
        if field is not None and field.type == "struct":
            content = _nested(field, content, placeholders)
        elif field is not None and _is_topic_id(field) and isinstance(content, str) and not _as_id(content):
            stand_in = uuid5(NAMESPACE_URL, f"kafka:{content}")
            placeholders[stand_in] = content
            content = uuid_text(stand_in)
        written[key] = content
    # a topic has one of the two (MetadataRequest, DeleteTopicsRequest)
    by_id = [
        field for field in topics if _is_topic_id(field) and written.get(field.name) not in (None, uuid_text(_NO_ID))
    ]
    for field in topics if by_id else ():
        if _is_topic_name(field) and field.nullable:
            written.setdefault(field.name, None)
    return written


def _nested(field: LayoutField, content: Any, placeholders: dict[UUID, str]) -> Any:
    if field.array and isinstance(content, list):
        return [_with_placeholders(field.fields, item, placeholders) for item in content]
    return _with_placeholders(field.fields, content, placeholders)


def _as_id(text: str) -> UUID | None:
    try:
        return parse_uuid(text)
    except ValueError:
        return None


def ids_for_names(api: str, version: int, value: Mapping[str, Any]) -> dict[str, UUID]:
    """Texts of a request that are in place of names and look like ids."""
    return {
        text: topic_id
        for field, content in _walk(layout(f"{api}Request", version).fields, value)
        if _is_topic_name(field)
        for text in (content if field.array else [content])
        if isinstance(text, str) and (topic_id := _as_id(text))
    }


def ids_of(api: str, version: int, value: Mapping[str, Any]) -> set[UUID]:
    """Topic ids in a response."""
    fields = layout(f"{api}Response", version).fields
    return {content for field, content in _walk(fields, value) if _is_topic_id(field) and content} - {_NO_ID}


def names_of(api: str, version: int, value: Mapping[str, Any]) -> dict[UUID, str]:
    """Topic names by id, from a response itself."""
    names: dict[UUID, str] = {}
    _pairs(layout(f"{api}Response", version).fields, value, names)
    return names


def _pairs(fields: tuple[LayoutField, ...], value: Mapping[str, Any], found_names: dict[UUID, str]) -> None:
    ids = [value[field.name] for field in fields if _is_topic_id(field) and not field.array and field.name in value]
    names = [value[field.name] for field in fields if _is_topic_name(field) and not field.array and field.name in value]
    if len(ids) == len(names) == 1 and ids[0] and ids[0] != _NO_ID and names[0]:
        found_names[ids[0]] = names[0]
    for field in fields:
        content = value.get(field.name)
        if field.type == "struct" and content is not None:
            for item in content if field.array else [content]:
                _pairs(field.fields, item, found_names)


def _walk(fields: tuple[LayoutField, ...], value: Mapping[str, Any]) -> Iterator[tuple[LayoutField, Any]]:
    for field in fields:
        content = value.get(field.name)
        if content is None:
            continue
        yield field, content
        if field.type == "struct":
            for item in content if field.array else [content]:
                yield from _walk(field.fields, item)


def substitute(value: Any, by: Mapping[Any, Any]) -> Any:
    """The value with every uuid or string that is in `by` replaced."""
    if isinstance(value, dict):
        return {key: substitute(item, by) for key, item in value.items()}
    if isinstance(value, list):
        return [substitute(item, by) for item in value]
    return by.get(value, value) if isinstance(value, (UUID, str)) else value


async def resolve(
    cluster: "Cluster", api: str, version: int, value: dict[str, Any], placeholders: Mapping[UUID, str]
) -> tuple[dict[str, Any], dict[UUID, str]]:
    """The value with real ids for placeholders and real names for ids, and the names of the ids that it now has."""
    ids = await topic_ids(cluster, placeholders.values())
    by: dict[Any, Any] = {stand_in: ids[name] for stand_in, name in placeholders.items()}
    names = {topic_id: name for name, topic_id in ids.items()}
    maybe = ids_for_names(api, version, value)
    if maybe:
        named = await topic_names(cluster, maybe.values())
        by |= {text: named[topic_id] for text, topic_id in maybe.items() if topic_id in named}
    return substitute(value, by), names


async def topic_ids(cluster: "Cluster", names: Iterable[str]) -> dict[str, UUID]:
    """Topic ids by name; NotFoundError if a topic doesn't exist."""
    unique = list(dict.fromkeys(names))
    if not unique:
        return {}
    topics = await _metadata(cluster, [{"topicId": _NO_ID, "name": name} for name in unique])
    ids = {topic["name"]: topic["topicId"] for topic in topics if topic["topicId"] != _NO_ID}
    for name in unique:
        if name not in ids:
            raise NotFoundError(f"this cluster has no topic {clip(name)}{await _near(cluster, name)}")
    return ids


async def topic_names(cluster: "Cluster", ids: Iterable[UUID]) -> dict[UUID, str]:
    """Topic names by id, for topics that exist and that we may see."""
    queries = [{"topicId": topic_id, "name": None} for topic_id in dict.fromkeys(ids)]
    if not queries:
        return {}
    topics = await _metadata(cluster, queries)
    return {topic["topicId"]: topic["name"] for topic in topics if topic["name"] and topic["errorCode"] == 0}


async def _metadata(cluster: "Cluster", topics: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    if cluster.controllers:
        raise UsageError("controllers don't report topic ids; give a broker's address, or the id itself")
    if (await cluster.versions())[_METADATA][1] < _WITH_IDS:
        raise UsageError(
            "this cluster can't look up topic ids (3.1 and later can); write the id or the name that the version has"
        )
    response = await cluster.call("Metadata", {"topics": topics, "allowAutoTopicCreation": False})
    rows: list[dict[str, Any]] = response.value["topics"]
    return rows


async def _near(cluster: "Cluster", name: str) -> str:
    topics = [topic["name"] for topic in await _metadata(cluster, None) if topic["name"]]
    return did_you_mean(close_names(name, topics, most=2)) or ", or this user may not see it"
