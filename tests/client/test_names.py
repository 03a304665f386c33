"""Topics by name where ids belong and the other way round: what is looked up, and what is left as it is."""

from uuid import UUID

from kafkascope.client.arguments import request_value
from kafkascope.client.names import ids_for_names, ids_of, names_of, substitute, with_placeholders
from kafkascope.codec.json_form import uuid_text
from kafkascope.schema.layouts.examples import example

ORDERS = UUID("6513270e-269e-4d37-b2a7-4de452e6b438")


def test_a_name_where_an_id_belongs_gets_a_stand_in() -> None:
    content, stand_ins = with_placeholders(
        "Fetch", 17, {"topics": [{"topicId": "orders"}, {"topicId": uuid_text(ORDERS)}]}
    )
    assert list(stand_ins.values()) == ["orders"]
    first, second = request_value("Fetch", 17, content)["topics"]
    assert (first["topicId"], second["topicId"]) == (next(iter(stand_ins)), ORDERS)
    assert substitute(first, {next(iter(stand_ins)): ORDERS})["topicId"] == ORDERS


def test_both_forms_of_an_id_are_ids() -> None:
    assert with_placeholders("Fetch", 17, {"topics": [{"topicId": str(ORDERS)}]})[1] == {}


def test_a_topic_may_go_by_any_of_its_field_names() -> None:
    by_name, stand_ins = with_placeholders("Fetch", 17, {"topics": [{"topic": "orders"}]})
    assert list(stand_ins.values()) == ["orders"]
    assert by_name["topics"][0].keys() == {"topicId"}
    by_id, stand_ins = with_placeholders("Fetch", 12, {"topics": [{"topicId": uuid_text(ORDERS)}]})
    assert stand_ins == {}
    assert ids_for_names("Fetch", 12, request_value("Fetch", 12, by_id)) == {uuid_text(ORDERS): ORDERS}


def test_the_definitions_spelling_is_read_too() -> None:
    assert list(with_placeholders("Fetch", 17, {"Topics": [{"TopicId": "orders"}]})[1].values()) == ["orders"]


def test_a_topic_goes_by_one_of_id_and_name() -> None:
    content, _ = with_placeholders("Metadata", 12, {"topics": [{"topicId": "orders"}, {"name": "payments"}]})
    assert [topic.get("name", "absent") for topic in content["topics"]] == [None, "payments"]


def test_a_misspelt_field_stays_for_the_check_to_find() -> None:
    content = {"topics": [{"topicIdd": "orders"}], "more": 1}
    assert with_placeholders("Fetch", 17, content) == (content, {})


def test_what_is_no_object_is_left_alone() -> None:
    odd: list[object] = [[], "x", 3, None, {"topics": {"topicId": 5}}, {"topics": [5]}]
    for content in odd:
        assert with_placeholders("Fetch", 17, content) == (content, {})


def test_a_name_that_is_no_id_is_not_looked_up() -> None:
    assert ids_for_names("DeleteTopics", 5, {"topicNames": ["orders", "x" * 23]}) == {}
    assert ids_for_names("DeleteTopics", 5, {"topicNames": [uuid_text(ORDERS)]}) == {uuid_text(ORDERS): ORDERS}


def test_ids_of_an_answer_are_found_and_named_by_the_answer_itself_where_it_can() -> None:
    metadata, fetch = example("MetadataResponse", 12), example("FetchResponse", 17)
    assert ORDERS in ids_of("Metadata", 12, metadata)
    assert names_of("Metadata", 12, metadata)[ORDERS] == "orders"
    assert ids_of("Fetch", 17, fetch) == {ORDERS}
    assert names_of("Fetch", 17, fetch) == {}
