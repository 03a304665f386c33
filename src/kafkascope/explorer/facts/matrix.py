"""A message in, two matrices out: which version has which field, and which release has it in which versions."""

from collections.abc import Iterator
from typing import Any

from kafkascope.schema.layouts.layout import choose_block
from kafkascope.schema.model import Block, Field, Message
from kafkascope.schema.releases import release_order, releases
from kafkascope.schema.versions import format_versions

# A field's place in the catalog: names of it and of what it lies in.
Place = tuple[str, ...]


def version_matrix(known: Message) -> dict[str, Any]:
    """A cell is `yes`, `null` (there, may be null), `tag` (in the tag section) or `no`."""
    versions = known.all_versions()
    states = {version: dict(_fields_at(known, version, None)) for version in versions}
    rows = [
        _row(place, [_state(states[version].get(place), version) for version in versions], states)
        for place in _places(known)
        if any(place in states[version] for version in versions)
    ]
    return {"versions": versions, "rows": rows}


def release_matrix(known: Message) -> dict[str, Any]:
    """A cell has the versions of a release that hold the field; releases that are alike share a column."""
    columns: list[dict[str, Any]] = []
    for release in releases():
        served = known.versions_in(release.name)
        versions = [version for version in known.all_versions() if served is not None and version in served]
        if not versions:
            continue
        holding: dict[Place, list[int]] = {}
        for version in versions:
            for place, _ in _fields_at(known, version, release.name):
                holding.setdefault(place, []).append(version)
        if columns and (columns[-1]["versions"], columns[-1]["holding"]) == (versions, holding):
            columns[-1]["last"] = release.name
        else:
            columns.append({"first": release.name, "last": release.name, "versions": versions, "holding": holding})
    rows = [
        _row(place, [_held(column, place) for column in columns], {})
        for place in _places(known)
        if any(place in column["holding"] for column in columns)
    ]
    listed = [
        {"first": column["first"], "last": column["last"], "versions": format_versions(column["versions"])}
        for column in columns
    ]
    return {"releases": listed, "rows": rows}


def _held(column: dict[str, Any], place: Place) -> str:
    """`all`, or the versions, or nothing."""
    found = column["holding"].get(place, [])
    return "all" if found == column["versions"] else format_versions(found)


def _row(place: Place, cells: list[str], states: dict[int, dict[Place, Field]]) -> dict[str, Any]:
    newest = max((version for version in states if place in states[version]), default=None)
    return {"path": ".".join(place), "name": place[-1], "depth": len(place) - 1, "newest": newest, "cells": cells}


def _state(field: Field | None, version: int) -> str:
    if field is None:
        return "no"
    if version in field.tagged:
        return "tag"
    return "null" if version in field.nullable else "yes"


def _places(known: Message) -> list[Place]:
    """Of all layouts, in the order of the newest; what only older ones have comes last."""
    found: dict[Place, None] = {}
    for block in sorted(known.blocks, key=lambda block: block.releases is not None):
        for place in _all(block.fields, ()):
            found.setdefault(place)
    return list(found)


def _all(fields: tuple[Field, ...], above: Place) -> Iterator[Place]:
    for field in fields:
        yield (*above, field.name)
        yield from _all(field.fields, (*above, field.name))


def _fields_at(known: Message, version: int, release: str | None) -> Iterator[tuple[Place, Field]]:
    """As `layout` has them, without making one for every release."""
    block: Block = choose_block(known, version, release)
    order = release_order()

    def visit(fields: tuple[Field, ...], above: Place) -> Iterator[tuple[Place, Field]]:
        for field in fields:
            late = release is not None and field.since is not None and order[field.since] > order[release]
            if version in field.versions and not late:
                yield (*above, field.name), field
                yield from visit(field.fields, (*above, field.name))

    yield from visit(block.fields, ())
