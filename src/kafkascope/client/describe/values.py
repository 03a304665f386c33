"""Values that several views share: nodes, assignments, settings; and Kafka's text form of a uuid."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kafkascope.codec.json_form import uuid_text

Place = tuple[str, int]  # topic and partition
ZERO = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Node:
    """A broker as a view names it; `address` is None where nobody told it."""

    node_id: int
    address: str | None


@dataclass(frozen=True, slots=True)
class Assigned:
    """Partitions of one topic."""

    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """One configuration. `value` is None where it is sensitive or not set; `source` in Kafka's words."""

    name: str
    value: str | None
    source: str
    sensitive: bool = False
    read_only: bool = False


def kafka_uuid(value: UUID | None) -> str | None:
    """As Kafka prints it: unpadded url-safe base64; None for the zero uuid, which stands for none."""
    if value is None or value == ZERO:
        return None
    return uuid_text(value)


def assigned(topic_partitions: Iterable[Mapping[str, Any]]) -> tuple[Assigned, ...]:
    """From `{topicName, partitions}` rows of an answer, by topic."""
    found = (Assigned(row["topicName"], tuple(sorted(row["partitions"]))) for row in topic_partitions)
    return tuple(sorted(found, key=lambda one: one.topic))


def places(assignment: Iterable[Assigned]) -> list[Place]:
    return [(one.topic, partition) for one in assignment for partition in one.partitions]


def known(value: int | None) -> int | None:
    """Kafka writes −1 for what it does not know."""
    return None if value is None or value < 0 else value


def total(parts: Iterable[int | None]) -> int | None:
    """The sum; None where one of them is not known, since the sum is not either."""
    whole = 0
    for part in parts:
        if part is None:
            return None
        whole += part
    return whole


def waiting(lags: Iterable[int | None]) -> int | None:
    """The sum of lags. One below 0, of an offset past the end, hides no record of another partition."""
    return total(None if lag is None else max(0, lag) for lag in lags)
