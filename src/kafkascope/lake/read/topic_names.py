"""Finds the arrays in a body whose elements have a topic's id and its name. Newer versions send only the id (Produce
from 13, Fetch from 13, OffsetCommit from 10), so views fill in the name from the table `topics`."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

TOPICS = "topics"
TOPIC_ID, TOPIC = "topic_id", "topic"
_NAMES = ("name", TOPIC, "topic_name")


@dataclass(frozen=True, slots=True)
class TopicElement:
    """An array's element: its field for the topic's name, if it has one, and its own arrays of such elements."""

    name: str | None
    arrays: Mapping[str, "TopicElement"]


def topic_arrays(schema: pa.Schema) -> dict[str, TopicElement]:
    """Columns that are such arrays, or contain them."""
    return _arrays(list(schema))


def _arrays(fields: list[pa.Field]) -> dict[str, TopicElement]:
    elements = {field.name: _element(field.type.value_type) for field in fields if pa.types.is_list(field.type)}
    return {name: element for name, element in elements.items() if element is not None}


def _element(kind: pa.DataType) -> TopicElement | None:
    if not pa.types.is_struct(kind):
        return None
    fields = [kind.field(index) for index in range(kind.num_fields)]
    names = {field.name for field in fields}
    name = next((name for name in _NAMES if name in names), None) if TOPIC_ID in names else None
    arrays = _arrays(fields)
    return TopicElement(name, arrays) if name or arrays else None
