"""Compares two versions of an API or message, field by field."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from kafkascope.errors import NotFoundError
from kafkascope.explorer.facts.changes import all_changes
from kafkascope.explorer.page import Kind, Page
from kafkascope.explorer.pages.changelog import named
from kafkascope.schema.catalog import apis, index, message
from kafkascope.schema.export import span_text
from kafkascope.schema.history.align import FieldPair, side_by_side
from kafkascope.schema.history.compare import compare_layouts, short_type
from kafkascope.schema.layouts.diagram import encoding
from kafkascope.schema.layouts.layout import Layout, LayoutField, describe_versions, layout
from kafkascope.schema.names import clip, parse_number
from kafkascope.schema.prose import sentence


def make(name: str, a: str, b: str) -> Page:
    target = named(name)
    first = message(target.messages[0])
    versions = first.all_versions()
    old, new = (_version(text, target.api or first.name, versions, describe_versions(first)) for text in (a, b))
    title = target.api or first.name
    at = versions.index(new)
    facts = {
        "name": title,
        "api": first.api,
        "a": old,
        "b": new,
        "versions": versions,
        "releases": {str(version): span_text(first.releases_of(version)) for version in (old, new)},
        "neighbours": [
            {"name": title, "a": x, "b": y}
            for x, y in pairwise(versions[max(at - 2, 0) : at + 2])
            if {x, y} != {old, new}
        ],
        "messages": [_message(layout(item, old), layout(item, new)) for item in target.messages],
    }
    return Page(f"{title} v{old} → v{new}", facts, f"What changed on the wire between {title} v{old} and v{new}.")


def _version(text: str, title: str, versions: list[int], described: str) -> int:
    number = parse_number(text.removeprefix("v"))
    if number not in versions:
        raise NotFoundError(f"{title} has no version {clip(text)}; {described}")
    return number


def _message(old: Layout, new: Layout) -> dict[str, Any]:
    rows = side_by_side(old, new)
    return {
        "name": new.message.name,
        "encodings": ["flexible" if side.flexible else "classic" for side in (old, new)],
        "changes": all_changes(compare_layouts(old, new)),
        "rows": [_row(new, row) for row in rows],
    }


def _row(new: Layout, row: FieldPair) -> dict[str, Any]:
    field = row.after or row.before
    assert field is not None
    return {
        "path": ".".join(row.path),
        "name": row.path[-1],
        "depth": row.depth,
        "what": row.what,
        "before": _side(row.before),
        "after": _side(row.after),
        "changes": all_changes(row.changes),
        "prose": sentence(new.message, row.path) if row.changes else None,
    }


def _side(field: LayoutField | None) -> dict[str, Any] | None:
    if field is None:
        return None
    return {
        "name": field.kafka_name,
        "type": short_type(field),
        "nullable": field.nullable,
        "tag": field.tag,
        "default": field.default,
        "encoding": encoding(field),
    }


def every() -> Iterator[dict[str, str]]:
    """Neighbouring versions of each API, request and response together, and of each message."""
    versions = {name: message(name).all_versions() for name in index()}
    versions |= {api: versions[f"{api}Request"] for api in apis().values()}
    for name, numbers in versions.items():
        for a, b in pairwise(numbers):
            yield {"name": name, "a": str(a), "b": str(b)}


KIND = Kind("diff", "diff/{name}/{a}-{b}.html", "diff.html", make, every)
