"""Defines values that several views share, such as node addresses, assignments and settings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kafkascope.codec.json_form import uuid_text

TopicPartition = tuple[str, int]  # topic and partition
_ZERO = UUID(int=0)


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """A broker as a view names it; `address` is None if unknown."""

    node_id: int
    address: str | None


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """Partitions of one topic."""

    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `value` is None if it's sensitive or not set; `source` is in Kafka's words."""

    name: str
    value: str | None
    source: str
    sensitive: bool = False
    read_only: bool = False


def kafka_uuid(value: UUID | None) -> str | None:
    """The uuid as Kafka prints it, in unpadded url-safe base64; None for the zero uuid, which means none."""
    if value is None or value == _ZERO:
        return None
    return uuid_text(value)


def topic_assignments(topic_partitions: Iterable[Mapping[str, Any]]) -> tuple[TopicAssignment, ...]:
    """From `{topicName, partitions}` rows of a response, by topic."""
    assignments = (TopicAssignment(row["topicName"], tuple(sorted(row["partitions"]))) for row in topic_partitions)
    return tuple(sorted(assignments, key=lambda row: row.topic))


def topic_partitions(assignment: Iterable[TopicAssignment]) -> list[TopicPartition]:
    return [(row.topic, partition) for row in assignment for partition in row.partitions]


def known_or_none(value: int | None) -> int | None:
    """Kafka writes −1 for unknown values."""
    return None if value is None or value < 0 else value


def sum_or_none(parts: Iterable[int | None]) -> int | None:
    """The sum, or None if one value is unknown."""
    result = 0
    for part in parts:
        if part is None:
            return None
        result += part
    return result


def total_lag(lags: Iterable[int | None]) -> int | None:
    """The sum of lags. A negative one, of an offset past the end, counts as 0, so that it hides no other lag."""
    return sum_or_none(None if lag is None else max(0, lag) for lag in lags)
