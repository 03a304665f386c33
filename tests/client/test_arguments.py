"""JSON of a request is checked before it goes anywhere; a template holds every field and is itself a request."""

import pytest

from kafkascope.client.arguments import DEFAULTS, request_value, template
from kafkascope.codec.json_form import to_json
from kafkascope.codec.message import decode, encode
from kafkascope.errors import EncodeError
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.layouts.layout import LayoutField, layout

EVERY = [(api, version) for api in apis().values() for version in message(f"{api}Request").all_versions()]


def test_every_template_names_every_field_and_can_be_sent() -> None:
    for api, version in EVERY:
        made = template(api, version)
        assert _missing(layout(f"{api}Request", version).fields, made) == set(), (api, version)
        encode(f"{api}Request", version, request_value(api, version, made))


def _missing(fields: tuple[LayoutField, ...], made: dict[str, object]) -> set[str]:
    missing = {field.name for field in fields} - made.keys()
    for field in fields:
        content = made.get(field.name)
        if field.type == "struct":
            inner = content[0] if isinstance(content, list) and content else content
            missing |= _missing(field.fields, inner) if isinstance(inner, dict) else {field.name}
    return missing


def test_every_request_can_be_made_of_nothing() -> None:
    for api, version in EVERY:
        encode(f"{api}Request", version, request_value(api, version, {}))


def test_every_default_of_ours_is_for_a_field_that_exists() -> None:
    for place in DEFAULTS:
        api, *path = place.split(".")
        assert any(_has(layout(f"{api}Request", v).fields, path) for v in message(f"{api}Request").all_versions()), (
            place
        )


def _has(fields: tuple[LayoutField, ...], path: list[str]) -> bool:
    field_named = next((field for field in fields if field.name == path[0]), None)
    return field_named is not None and (len(path) == 1 or _has(field_named.fields, path[1:]))


def test_metadata_asks_for_all_topics_and_creates_none() -> None:
    assert request_value("Metadata", 12, {}) == {"topics": None, "allowAutoTopicCreation": False}
    assert request_value("Metadata", 0, {}) == {}


def test_what_is_given_wins_over_defaults() -> None:
    assert request_value("Metadata", 12, {"Topics": [], "allowAutoTopicCreation": True}) == {
        "topics": [],
        "allowAutoTopicCreation": True,
    }


def test_defaults_reach_into_lists() -> None:
    content = {"topics": [{"name": "orders", "partitions": [{"partitionIndex": 0}, {"timestamp": -2}]}]}
    rows = request_value("ListOffsets", 7, content)["topics"][0]["partitions"]
    assert [row["timestamp"] for row in rows] == [-1, -2]


def test_describe_quorum_asks_about_the_metadata_log_by_itself() -> None:
    data = encode("DescribeQuorumRequest", 2, request_value("DescribeQuorum", 2, {}))
    value = to_json("DescribeQuorumRequest", 2, decode("DescribeQuorumRequest", 2, data).value)
    assert value == {"topics": [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"topcs": []}, "DescribeQuorumRequest v2, topcs: no such field; did you mean topics?"),
        ({"topics": [{"topicNam": "x"}]}, "topics[0].topicNam: no such field; did you mean topicName?"),
        ({"topics": [{"partitions": [{"partitionIndex": "0"}]}]}, "partitionIndex: expected int32, got a string"),
        ([], "DescribeQuorumRequest v2: expected an object, got a list"),
    ],
)
def test_what_is_wrong_is_named_by_its_path_before_anything_is_sent(content: object, says: str) -> None:
    with pytest.raises(EncodeError) as error:
        request_value("DescribeQuorum", 2, content)
    assert says in str(error.value)
