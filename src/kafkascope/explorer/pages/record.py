"""The page of one version of a record of a coordinator, of the metadata log or of a control batch."""

from collections.abc import Iterator
from typing import Any

from kafkascope.codec.records.control import TYPES
from kafkascope.codec.write import uvarint
from kafkascope.explorer.page import Kind, Page
from kafkascope.explorer.pages.message import every_of, find_layout, message_page
from kafkascope.schema.catalog import index, message
from kafkascope.schema.history.compare import versions_in
from kafkascope.schema.layouts.layout import Layout
from kafkascope.schema.record_places import RECORD_GROUPS, Prefix, group_of, place_of, prefix_of
from kafkascope.schema.releases import releases

KINDS_HERE = ("key", "value", "metadata", "data")


def make(name: str, version: str) -> Page:
    message_layout = find_layout(name, version, KINDS_HERE)
    page = message_page(message_layout)
    return Page(page.title, page.facts | {"place": _place(message_layout)}, page.description)


def _place(message_layout: Layout) -> dict[str, Any]:
    name = message_layout.message.name
    group = group_of(name)
    prefix = prefix_of(name, message_layout.version)
    return {
        "group": group,
        "title": RECORD_GROUPS[group],
        "lies": place_of(name),
        "prefix": [
            {"name": item.name, "type": item.type, "value": item.value, "meaning": item.meaning,
             "hex": _prefix_bytes(item).hex(" ")}
            for item in prefix
        ],
        "prefixHex": b"".join(map(_prefix_bytes, prefix)).hex(),
        "partner": _partner(name),
        "controlTypes": [
            {"type": number, "name": type_name} for number, (type_name, message) in TYPES.items() if message == name
        ],
    }  # fmt: skip


def _prefix_bytes(item: Prefix) -> bytes:
    if item.type == "int16":
        return item.value.to_bytes(2, "big", signed=True)
    return uvarint(item.value)


def _partner(name: str) -> dict[str, Any] | None:
    """The value of a key, and the key of a value."""
    for half, other in (("Key", "Value"), ("Value", "Key")):
        partner = name.removesuffix(half) + other
        if name.endswith(half) and partner in index():
            return {"name": partner, "version": present_version(partner)}
    return None


def present_version(name: str) -> int:
    """The newest version in the newest release with the message: keys once had their type as a version."""
    definition = message(name)
    return max(versions_in(definition, next(r.name for r in reversed(releases()) if versions_in(definition, r.name))))


def every() -> Iterator[dict[str, str]]:
    return every_of(KINDS_HERE)


KIND = Kind("record", "record/{name}/{version}.html", "record.html", make, every)
