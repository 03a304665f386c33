"""The page of a field name: all places with such a field."""

from typing import Any

from kafkascope.errors import NotFoundError
from kafkascope.explorer.facts.field_places import FieldPlace, field_places, near_fields
from kafkascope.explorer.page import Kind, Page
from kafkascope.formatting import did_you_mean
from kafkascope.schema.catalog import message
from kafkascope.schema.names import clip
from kafkascope.schema.prose import sentence


def make(name: str) -> Page:
    places = field_places().get(name)
    if places is None:
        hint = did_you_mean(near_fields(clip(name)), "the search finds fields by a part of their name")
        raise NotFoundError(f"unknown field {clip(name)}{hint}")
    listed = [_place(place) for place in places]
    spellings = sorted({place.path[-1] for place in places})
    kinds = {row["kind"] for row in listed}
    facts: dict[str, Any] = {
        "name": name,
        "spellings": spellings,
        "types": sorted({row["type"] for row in listed}),
        "groups": [
            {"title": title, "places": [row for row in listed if row["kind"] in of]}
            for title, of in (
                ("In requests", ("request",)),
                ("In responses", ("response",)),
                ("In records and other messages", ("header", "data", "key", "value", "metadata")),
            )
            if kinds & set(of)
        ],
    }
    return Page(name, facts, f"Every Kafka message with a field {name}: its type, versions and meaning.")


def _place(place: FieldPlace) -> dict[str, Any]:
    definition = message(place.message)
    field = place.field
    return {
        "message": place.message,
        "kind": definition.kind,
        "path": ".".join(place.path),
        "type": f"[]{field.type}" if field.array else field.type,
        "versions": field.versions.text,
        "nullable": place.version in field.nullable,
        "tag": field.tag if place.version in field.tagged else None,
        "newest": place.version,
        "prose": sentence(definition, place.path),
    }


KIND = Kind("field", "field/{name}.html", "field.html", make, lambda: ({"name": name} for name in field_places()))
