"""Indexes every field of the catalog by name: which messages have it, where, and since which version."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from kafkascope.formatting import close_names
from kafkascope.schema.catalog import index, message
from kafkascope.schema.model import Field, Message


class FieldPlace(NamedTuple):
    """`version` is the newest that has the field, `path` the names that lead to it."""

    message: str
    path: tuple[str, ...]
    version: int
    field: Field


def places_in(definition: Message) -> Iterator[FieldPlace]:
    """The fields of one message, in the order of its newest layout."""
    block = next(block for block in definition.blocks if block.releases is None)

    def visit(fields: tuple[Field, ...], above: tuple[str, ...], allowed: list[int]) -> Iterator[FieldPlace]:
        for field in fields:
            having = [version for version in allowed if version in field.versions]
            if having:
                yield FieldPlace(definition.name, (*above, field.name), having[-1], field)
                yield from visit(field.fields, (*above, field.name), having)

    yield from visit(block.fields, (), [version for version in definition.all_versions() if version in block.versions])


@cache
def field_places() -> dict[str, tuple[FieldPlace, ...]]:
    """By the most common spelling. Older records spell some names with a small letter, and file systems may not
    distinguish `topicId` from `TopicId`, so these are one name."""
    by_name: dict[str, list[FieldPlace]] = {}
    for name in index():
        for place in places_in(message(name)):
            by_name.setdefault(place.path[-1].lower(), []).append(place)
    spelt = {key: Counter(place.path[-1] for place in places).most_common(1)[0][0] for key, places in by_name.items()}
    named = {spelt[key][:1].upper() + spelt[key][1:]: tuple(places) for key, places in by_name.items()}
    return dict(sorted(named.items()))


@cache
def _names() -> dict[str, str]:
    return {name.lower(): name for name in field_places()}


def near_fields(name: str) -> list[str]:
    """Similar names, nearest first."""
    same = field_name(name)
    if same:
        return [same]
    return close_names(name.lower(), _names(), most=3, cutoff=0.8)


def field_name(field: str) -> str | None:
    """The name of the field's page."""
    return _names().get(field.lower())
