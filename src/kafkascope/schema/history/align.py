"""Aligns the fields of two layouts side by side: every field of both once, in the order of the newer layout."""

from collections.abc import Iterator
from dataclasses import dataclass

from kafkascope.schema.history.compare import Change, compare_field, partners, short_type
from kafkascope.schema.layouts.layout import Layout, LayoutField


@dataclass(frozen=True, slots=True)
class FieldPair:
    """`what`: same, added, removed or changed; `changes` describe how. `path` has the names of the newer layout."""

    path: tuple[str, ...]
    depth: int
    what: str
    before: LayoutField | None
    after: LayoutField | None
    changes: tuple[Change, ...]


def side_by_side(old: Layout, new: Layout) -> list[FieldPair]:
    return list(_pairs(old.fields, new.fields, ()))


def _pairs(old: tuple[LayoutField, ...], new: tuple[LayoutField, ...], above: tuple[str, ...]) -> Iterator[FieldPair]:
    matched = partners(old, new)
    position = {id(after): at for at, (_, after) in enumerate(matched) if after is not None}
    next_old = 0
    for field in new:
        at = position.get(id(field))
        if at is None:
            yield from _alone(field, above, "added")
            continue
        # A removed field keeps its place: before the field that followed it.
        yield from _gone(matched[next_old:at], above)
        next_old = max(next_old, at + 1)
        yield from _both(matched[at][0], field, above)
    yield from _gone(matched[next_old:], above)


def _gone(matched: list[tuple[LayoutField, LayoutField | None]], above: tuple[str, ...]) -> Iterator[FieldPair]:
    for before, after in matched:
        if after is None:
            yield from _alone(before, above, "removed")


def _both(before: LayoutField, after: LayoutField, above: tuple[str, ...]) -> Iterator[FieldPair]:
    path = (*above, after.kafka_name)
    changes = tuple(compare_field(before, after, ".".join(path)))
    yield FieldPair(path, len(above), "changed" if changes else "same", before, after, changes)
    yield from _pairs(before.fields, after.fields, path)


def _alone(field: LayoutField, above: tuple[str, ...], kind: str) -> Iterator[FieldPair]:
    path = (*above, field.kafka_name)
    before, after = (field, None) if kind == "removed" else (None, field)
    types = (short_type(field), None) if kind == "removed" else (None, short_type(field))
    # An added or removed container is one change that includes everything in it.
    yield FieldPair(path, len(above), kind, before, after, (Change(kind, ".".join(path), *types),))
    for child in field.fields:
        for row in _alone(child, path, kind):
            yield FieldPair(row.path, row.depth, kind, row.before, row.after, ())
