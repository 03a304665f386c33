"""The JSON document: as its schema says, and the schema as the code."""

import dataclasses
import json
from typing import Any

import jsonschema
import pytest

from kafkascope.report.json_form import report_json, schema, text_of
from kafkascope.report.summaries import (
    apis,
    buckets,
    clients,
    disks,
    findings,
    incidents,
    quorum,
    share,
    share_survey,
    streams,
    streams_lanes,
    unread,
)
from tests.report.page.test_page import NAMES, report

MODULES = (
    apis,
    buckets,
    clients,
    disks,
    findings,
    incidents,
    quorum,
    share,
    share_survey,
    streams,
    streams_lanes,
    unread,
)
# Definitions of the schema keep their names: programs may be generated from them.
CLASSES = {
    "Apis": "ApiSummary",
    "Capture": "CaptureTotals",
    "Member": "MemberTotals",
    "Piece": "TaskInterval",
    "Place": "PartitionTotals",
    "Proof": "EvidenceLink",
    "Quorum": "QuorumSummary",
    "Replica": "ReplicaLag",
    "ShareGroup": "ShareGroupSummary",
    "Status": "StatusInterval",
    "StreamsGroup": "StreamsGroupSummary",
    "Totals": "StreamsGroupTotals",
    "Verdict": "VerdictSummary",
}


@pytest.mark.parametrize("name", NAMES)
def test_every_report_is_as_the_schema_says(name: str) -> None:
    jsonschema.Draft202012Validator(schema()).validate(report_json(report(name)))


def test_the_schema_refuses_what_it_does_not_know() -> None:
    for wrong in ({"more": 1}, {"first_at": "yesterday"}, {"verdict": {"state": "fine"}}, {"format": 2}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(report_json(report("share")) | wrong, schema())


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


def test_the_schema_names_the_fields_of_the_code() -> None:
    classes = {
        value.__name__: value for module in MODULES for value in vars(module).values() if isinstance(value, type)
    }
    objects = {name: part for name, part in schema()["$defs"].items() if name != "time"}
    assert len(objects) > 25
    for name, part in objects.items():
        fields = [field.name for field in dataclasses.fields(classes[CLASSES.get(name, name)])]
        assert list(part["properties"]) == part["required"] == fields, name
        assert part["description"], name


@pytest.mark.parametrize("name", NAMES)
def test_the_text_reads_back_as_the_document(name: str) -> None:
    document = report_json(report(name))
    assert json.loads(text_of(document)) == json.loads(json.dumps(document))


@pytest.mark.parametrize("value", [{}, [], [[]], {"a": {}}, [1, None, "x"], [{"b": [1, [2]]}], "é\n", 1.5, None])
def test_text_of_anything_reads_back(value: Any) -> None:
    assert json.loads(text_of(value)) == value


def test_lists_of_numbers_stand_on_one_line() -> None:
    assert text_of({"lag": [1, None, 3]}) == '{\n  "lag": [1, null, 3]\n}'


def test_it_says_what_the_page_says() -> None:
    document = report_json(report("share"))
    (group,) = document["share_groups"]["shown"]
    assert group["outcomes"]["lock_expired"] == 4
    assert group["counts"][1] == {"delivery_count": 2, "records": 11}
    assert group["buckets"] == {"first_at": "2026-11-15T12:07:24.800000Z", "step_us": 100_000, "count": 97}
    assert document["findings"]["shown"][0]["severity"] == "warning"
