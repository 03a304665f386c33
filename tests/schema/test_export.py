"""The catalog as JSON keeps to its JSON Schema and holds all that the catalog holds; the schema leaves nothing open."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kafkascope.schema.catalog import apis, index, message
from kafkascope.schema.errors.error_codes import error_codes
from kafkascope.schema.export import EXPORT_FORMAT, catalog_json
from kafkascope.schema.files import text
from kafkascope.schema.model import Field
from kafkascope.schema.releases import releases


@pytest.fixture(scope="module")
def catalog() -> dict[str, Any]:
    # Through text, as other programs get it: a tuple or a key that is no string would not survive.
    return dict(json.loads(json.dumps(catalog_json())))


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return dict(json.loads(text("catalog.schema.json")))


def subschemas(part: Any, path: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object schema, by its place."""
    if isinstance(part, dict):
        if "properties" in part and "type" in part:
            yield path, part
        for name, inner in part.items():
            yield from subschemas(inner, f"{path}/{name}")


def test_schema_is_one(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)
    assert schema["properties"]["format"]["const"] == EXPORT_FORMAT


def test_whole_catalog_keeps_to_its_schema(catalog: dict[str, Any], schema: dict[str, Any]) -> None:
    wrong = [
        f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in Draft202012Validator(schema).iter_errors(catalog)
    ]
    assert not wrong, wrong[:5]


def test_schema_closes_every_object_and_describes_every_property(schema: dict[str, Any]) -> None:
    parts_by_place = dict(subschemas(schema))
    assert len(parts_by_place) == 15
    for place, part in parts_by_place.items():
        assert part["additionalProperties"] is False, place
        assert part["description"], place
        optional = {"fields"} if place == "#/$defs/field" else set()
        assert set(part["properties"]) - set(part["required"]) == optional, place
        for name, inner in part["properties"].items():
            assert inner.get("description"), f"{place}/{name}"


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("messages", 0, "surprise"), 1),
        (("messages", 0, "layouts", 0, "fields", 0, "type"), "NoSuchStruct"),
        (("messages", 0, "versions", 0, "since"), None),
        (("apis", 0, "errors", 0, "origin"), "hearsay"),
        (("releases", 0, "coverage"), "some"),
        (("errors", 0, "code"), "0"),
    ],
)
def test_schema_refuses_what_the_catalog_never_says(
    catalog: dict[str, Any], schema: dict[str, Any], place: tuple[str | int, ...], value: object
) -> None:
    changed: Any = {
        name: json.loads(json.dumps(items[:1])) if isinstance(items, list) else items for name, items in catalog.items()
    }
    assert Draft202012Validator(schema).is_valid(changed)
    inner = changed
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    assert not Draft202012Validator(schema).is_valid(changed)


def test_every_release_api_message_and_error_is_there(catalog: dict[str, Any]) -> None:
    assert [r["name"] for r in catalog["releases"]] == [release.name for release in releases()]
    assert {a["key"]: a["name"] for a in catalog["apis"]} == apis()
    assert [m["name"] for m in catalog["messages"]] == list(index())
    assert [e["code"] for e in catalog["errors"]] == list(error_codes())


def test_every_version_and_field_is_there(catalog: dict[str, Any]) -> None:
    def names(fields: tuple[Field, ...]) -> list[Any]:
        return [(field.name, names(field.fields)) for field in fields]

    def written(fields: list[dict[str, Any]]) -> list[Any]:
        return [(field["name"], written(field.get("fields", []))) for field in fields]

    for item in catalog["messages"]:
        known = message(item["name"])
        assert [v["version"] for v in item["versions"]] == known.all_versions()
        assert [written(each["fields"]) for each in item["layouts"]] == [names(block.fields) for block in known.blocks]


def test_facts_reach_the_json(catalog: dict[str, Any]) -> None:
    by_name = {item["name"]: item for item in catalog["messages"]}
    share_fetch = next(api for api in catalog["apis"] if api["key"] == 78)
    assert share_fetch["name"] == "ShareFetch"
    assert share_fetch["family"] == "share groups"
    assert share_fetch["kips"] == [932, 1206, 1222]
    assert {"operation": "Read", "resource": "Group", "remark": None} in share_fetch["acls"]
    only_there = next(error for error in share_fetch["errors"] if error["name"] == "INVALID_RECORD_STATE")
    assert (only_there["origin"], only_there["fields"]) == ("definition", ["Responses.Partitions.AcknowledgeErrorCode"])
    removed = by_name["ShareFetchRequest"]["versions"][0]
    assert (removed["since"], removed["removedIn"], removed["unstableIn"]) == ("3.9", "4.1", ["3.9-4.0"])
    (client_id,) = (f for f in by_name["RequestHeader"]["layouts"][0]["fields"] if f["name"] == "ClientId")
    assert client_id["classicEncoding"] is True
    assert [each["releases"] for each in by_name["ReadShareGroupStateSummaryResponse"]["layouts"]] == [None, "3.9-4.0"]
