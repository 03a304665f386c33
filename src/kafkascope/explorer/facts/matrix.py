"""Builds two matrices of a message: fields by version, and fields by release."""

from collections.abc import Iterator
from typing import Any

from kafkascope.schema.layouts.layout import choose_block
from kafkascope.schema.model import Block, Field, Message
from kafkascope.schema.releases import release_order, releases
from kafkascope.schema.versions import format_versions

# A field's place in the catalog: its name, after the names of its parents.
_Place = tuple[str, ...]


def version_matrix(definition: Message) -> dict[str, Any]:
    """A cell is `yes`, `null` (present, may be null), `tag` (in the tag section) or `no`."""
    versions = definition.all_versions()
    states = {version: dict(_fields_at(definition, version, None)) for version in versions}
    rows = [
        _row(place, [_state(states[version].get(place), version) for version in versions], states)
        for place in _places(definition)
        if any(place in states[version] for version in versions)
    ]
    return {"versions": versions, "rows": rows}


def release_matrix(definition: Message) -> dict[str, Any]:
    """A cell has the versions of a release that have the field. Equal releases share a column."""
    columns: list[dict[str, Any]] = []
    for release in releases():
        served = definition.versions_in(release.name)
        versions = [version for version in definition.all_versions() if served is not None and version in served]
        if not versions:
            continue
        holding: dict[_Place, list[int]] = {}
        for version in versions:
            for place, _ in _fields_at(definition, version, release.name):
                holding.setdefault(place, []).append(version)
        if columns and (columns[-1]["versions"], columns[-1]["holding"]) == (versions, holding):
            columns[-1]["last"] = release.name
        else:
            columns.append({"first": release.name, "last": release.name, "versions": versions, "holding": holding})
    rows = [
        _row(place, [_held(column, place) for column in columns], {})
        for place in _places(definition)
        if any(place in column["holding"] for column in columns)
    ]
    listed = [
        {"first": column["first"], "last": column["last"], "versions": format_versions(column["versions"])}
        for column in columns
    ]
    return {"releases": listed, "rows": rows}


def _held(column: dict[str, Any], place: _Place) -> str:
    """`all`, the versions, or an empty text."""
    versions = column["holding"].get(place, [])
    return "all" if versions == column["versions"] else format_versions(versions)


def _row(place: _Place, cells: list[str], states: dict[int, dict[_Place, Field]]) -> dict[str, Any]:
    newest = max((version for version in states if place in states[version]), default=None)
    return {"path": ".".join(place), "name": place[-1], "depth": len(place) - 1, "newest": newest, "cells": cells}


def _state(field: Field | None, version: int) -> str:
    if field is None:
        return "no"
    if version in field.tagged:
        return "tag"
    return "null" if version in field.nullable else "yes"


def _places(definition: Message) -> list[_Place]:
    """The fields of all layouts, in the order of the newest; fields that only older ones have come last."""
    places: dict[_Place, None] = {}
    for block in sorted(definition.blocks, key=lambda block: block.releases is not None):
        for place in _all(block.fields, ()):
            places.setdefault(place)
    return list(places)


def _all(fields: tuple[Field, ...], above: _Place) -> Iterator[_Place]:
    for field in fields:
        yield (*above, field.name)
        yield from _all(field.fields, (*above, field.name))


def _fields_at(definition: Message, version: int, release: str | None) -> Iterator[tuple[_Place, Field]]:
    """The fields that `layout` has, without making a layout for every release."""
    block: Block = choose_block(definition, version, release)
    order = release_order()

    def visit(fields: tuple[Field, ...], above: _Place) -> Iterator[tuple[_Place, Field]]:
        for field in fields:
            late = release is not None and field.since is not None and order[field.since] > order[release]
            if version in field.versions and not late:
                yield (*above, field.name), field
                yield from visit(field.fields, (*above, field.name))

    yield from visit(block.fields, ())
