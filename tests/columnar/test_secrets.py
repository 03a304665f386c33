"""No secret leaves the decoder: not in a table, whichever engine read the frame, not in an error, not in JSON."""

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from kafkascope.codec.json_form import to_json
from kafkascope.codec.message import encode
from kafkascope.codec.result import UNKNOWN_TAGS
from kafkascope.columnar.decode import decode_columns
from kafkascope.columnar.secrets import Care, care_of, classified, hide
from kafkascope.columnar.tables import Column, table_of
from kafkascope.schema.catalog import index
from kafkascope.schema.layouts.layout import LayoutField, layout
from tests.support.pairs import Place, every_place
from tests.support.places import every_field
from tests.support.values import random_value

SECRET = "correct horse battery staple"  # noqa: S105
SHORT = "tr0ub4d0r"


def test_every_bytes_field_of_the_catalog_is_classified() -> None:
    """A new Kafka release may bring a new one: put it into secrets.txt as open or hidden."""
    places = {place for place, field in every_field().items() if field.type in ("bytes", "records")}
    assert places - set(classified()) == set()
    assert len(places) >= 43


def test_every_line_names_a_field_that_is_there() -> None:
    assert {place for place in classified() if place not in every_field()} == set()


def test_unlisted_bytes_are_hidden_and_unlisted_strings_open() -> None:
    assert care_of("NewRequest", ("Token",), "bytes") is Care.HIDDEN
    assert care_of("NewResponse", ("Records",), "records") is Care.HIDDEN
    assert care_of("NewRequest", ("Name",), "string") is Care.OPEN


def test_a_column_is_hidden_under_every_spelling_of_its_field() -> None:
    columns: dict[str, Column] = {}

    def visit(above: str, children: tuple[Column, ...]) -> None:
        for column in children:
            for name in column.names:
                columns[f"{above}.{name}"] = column
                visit(f"{above}.{name}", column.children)

    for name in index():
        visit(name, table_of(name))
    for place, care in classified().items():
        assert columns[place].care is care, place


def hidden(known: str, field: LayoutField, above: tuple[str, ...]) -> bool:
    return classified().get(".".join((known, *above, field.source.name))) is Care.HIDDEN


def poisoned(place: Place, case: int) -> dict[str, Any] | None:
    """A random value whose hidden fields and unknown tags hold the secret; None where there is nothing to hide."""
    known = layout(*place)
    planted = 0

    def struct(fields: tuple[LayoutField, ...], value: dict[str, Any], above: tuple[str, ...]) -> dict[str, Any]:
        nonlocal planted
        made = dict(value)
        for field in fields:
            content = value[field.name]
            path = (*above, field.source.name)
            if field.type == "struct" and content is not None:
                items = [struct(field.fields, item, path) for item in (content if field.array else [content])]
                made[field.name] = items if field.array else items[0]
            elif hidden(known.message.name, field, above) and field.type != "records":
                secret = SHORT if case % 2 else SECRET
                made[field.name] = secret if field.type == "string" else secret.encode()
                planted += 1
        if UNKNOWN_TAGS in value:
            made[UNKNOWN_TAGS] = [{**tag, "data": SECRET.encode()} for tag in value[UNKNOWN_TAGS]]
            planted += 1
        return made

    value = struct(known.fields, random_value(known, case), ())
    return value if planted else None


def poisoned_values() -> Iterator[tuple[Place, dict[str, Any]]]:
    for place in every_place():
        # The eighth has unknown tags everywhere.
        for case in (2, 7, 8, 11, 12):
            value = poisoned(place, case)
            if value is not None:
                yield place, value


def buffers_of(table: pa.Table) -> bytes:
    """Every byte that the table holds, seen or not."""
    buffers = [buffer for column in table.columns for chunk in column.chunks for buffer in chunk.buffers()]
    return b"|".join(bytes(buffer) for buffer in buffers if buffer is not None)


def test_secrets_reach_no_table_on_any_way() -> None:
    """A frame goes through the kernel, one with a byte too many through the codec, a cut one becomes an error."""
    count = 0
    for (name, version, release), value in poisoned_values():
        data = encode(name, version, value, release)
        cuts = [data[: len(data) - cut] for cut in (1, 2, 5, 9)]
        for frames in ([data], [data + b"\0"], cuts, [data, data + b"\0", *cuts]):
            held = buffers_of(decode_columns(name, version, pa.array(frames, type=pa.binary()), release))
            for secret in (SECRET, SHORT):
                assert secret.encode() not in held, f"{name} v{version} of {release}"
        count += 1
    assert count > 500


def test_secrets_do_not_reach_json() -> None:
    for (name, version, release), value in poisoned_values():
        text = json.dumps(to_json(name, version, value, release))
        assert any(secret in text or b64encode(secret.encode()).decode() in text for secret in (SECRET, SHORT))
        kept = json.dumps(hide(name, version, json.loads(text), release))
        for secret in (SECRET, SHORT):
            assert secret not in kept, f"{name} v{version} of {release}"
            assert b64encode(secret.encode()).decode() not in kept, f"{name} v{version} of {release}"


def test_json_keeps_what_is_open_and_reads_both_spellings() -> None:
    request = {
        "Resources": [
            {
                "ResourceType": 4,
                "resourceName": "1",
                "configs": [{"name": "ssl.keystore.password", "configOperation": 0, "value": SECRET}],
            }
        ],
        "validateOnly": False,
        "notYetKnown": SECRET,
        "_unknownTaggedFields": [{"tag": 9, "data": "c2VjcmV0IQ=="}],
    }
    assert hide("IncrementalAlterConfigsRequest", 1, request) == {
        "Resources": [
            {
                "ResourceType": 4,
                "resourceName": "1",
                "configs": [{"name": "ssl.keystore.password", "configOperation": 0, "value": None}],
            }
        ],
        "validateOnly": False,
        "notYetKnown": None,
        "_unknownTaggedFields": [{"tag": 9, "size": 7}],
    }
    assert request["notYetKnown"] == SECRET, "the value handed in stays as it was"


def test_json_of_record_data_keeps_its_size_alone() -> None:
    partitions = [{"index": 0, "recordsSizeInBytes": 70}, {"index": 1, "records": "c2VjcmV0"}]
    request = {"topicData": [{"name": "orders", "partitionData": partitions}]}
    assert hide("ProduceRequest", 9, request) == {
        "topicData": [
            {
                "name": "orders",
                "partitionData": [{"index": 0, "recordsSizeInBytes": 70}, {"index": 1, "records": None}],
            }
        ]
    }


@pytest.mark.parametrize("value", [None, "text", 7, [1]])
def test_json_that_is_no_message_loses_its_content(value: Any) -> None:
    assert hide("IncrementalAlterConfigsRequest", 1, value) is None
    assert hide("IncrementalAlterConfigsRequest", 1, {"resources": value})["resources"] in (None, [None])
