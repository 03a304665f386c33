"""Every API is classed by what brokers do with it, and a request that changes something says what in one line."""

from uuid import UUID

import pytest

from kafkascope.client.writes import INTERNAL, JOINS, READS, WRITES, effect, kind_of
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.layouts.examples import example
from kafkascope.schema.layouts.layout import LayoutField, layout

CLASSES = (READS, WRITES.keys(), JOINS.keys(), INTERNAL.keys())


def test_every_api_of_the_catalog_is_in_just_one_class() -> None:
    counts = {api: sum(api in names for names in CLASSES) for api in apis().values()}
    assert {api for api, count in counts.items() if count != 1} == set()


def test_no_api_is_classed_that_the_catalog_lacks() -> None:
    assert set().union(*CLASSES) == set(apis().values())


def test_an_api_that_nobody_classed_fails() -> None:
    with pytest.raises(KeyError):
        kind_of("BrandNew")


def test_what_describes_or_lists_never_needs_a_word() -> None:
    for api in apis().values():
        if "Describe" in api or api.startswith("List"):
            for version in message(f"{api}Request").all_versions():
                assert not effect(api, version, example(f"{api}Request", version)).changes or api.endswith("Update"), (
                    api
                )


def test_every_place_of_a_name_is_a_field_of_some_version() -> None:
    for words in (WRITES, JOINS, INTERNAL):
        for api, (does, places) in words.items():
            assert does and not does.endswith((".", ",", ":")), api
            for place in places.split():
                assert any(_has(api, version, place) for version in message(f"{api}Request").all_versions()), place


def _has(api: str, version: int, place: str) -> bool:
    fields: tuple[LayoutField, ...] = layout(f"{api}Request", version).fields
    for name in place.split("."):
        field_named = next((field for field in fields if field.name == name), None)
        if field_named is None:
            return False
        fields = field_named.fields
    return True


@pytest.mark.parametrize(
    ("api", "version", "value", "says"),
    [
        ("DeleteTopics", 5, {"topicNames": ["orders", "payments"]}, "delete topics: orders, payments"),
        ("DeleteTopics", 5, {"topicNames": list("abcdefg")}, "delete topics: a, b, c, d, e and 2 more"),
        ("CreateTopics", 7, {"topics": []}, "create topics"),
        ("JoinGroup", 9, {"groupId": "g"}, "join group, which rebalances: g"),
        ("InitProducerId", 5, {"transactionalId": None}, "allocate a producer id, or fence the producers of"),
        ("Metadata", 3, {"topics": [{"name": "orders"}]}, "create missing topics"),
        ("Metadata", 12, {"topics": [{"name": "orders"}], "allowAutoTopicCreation": True}, "create missing topics"),
        ("Fetch", 17, {"replicaState": {"replicaId": 2}}, "fetch as replica 2"),
        ("ShareFetch", 1, {"groupId": "g"}, "acquire records for share group"),
        ("ReadShareGroupState", 0, {"groupId": "g"}, "read the share state of group"),
    ],
)
def test_says_what_it_would_do(api: str, version: int, value: dict[str, object], says: str) -> None:
    change = effect(api, version, value)
    assert change.changes
    assert change.line.startswith(f"{api} would {says}"), change.line
    assert change.line.endswith("; add --write to send it")


def test_names_a_topic_rather_than_its_id() -> None:
    topic_id = UUID(int=7)
    change = effect("DeleteTopics", 6, {"topics": [{"topicId": topic_id, "name": None}]}, {topic_id: "orders"})
    assert change.does == "delete topics: orders"


@pytest.mark.parametrize(
    ("api", "version", "value"),
    [
        ("AlterConfigs", 2, {"validateOnly": True}),
        ("IncrementalAlterConfigs", 1, {"validateOnly": True}),
        ("CreateTopics", 7, {"topics": [{"name": "orders"}], "validateOnly": True}),
        ("AddPartitionsToTxn", 4, {"transactions": [{"transactionalId": "t", "verifyOnly": True}]}),
    ],
)
def test_what_the_broker_only_checks_needs_no_word(api: str, version: int, value: dict[str, object]) -> None:
    change = effect(api, version, value)
    assert (change.changes, change.remark) == (False, "the broker only validates it")


def test_one_transaction_that_is_not_only_verified_is_a_write() -> None:
    transactions = [{"transactionalId": "t", "verifyOnly": True}, {"transactionalId": "u", "verifyOnly": False}]
    assert effect("AddPartitionsToTxn", 4, {"transactions": transactions}).changes


@pytest.mark.parametrize(
    ("key_type", "topic"), [(0, "__consumer_offsets"), (1, "__transaction_state"), (2, "__share_group_state")]
)
def test_asking_for_a_coordinator_changes_something_only_without_its_topic(key_type: int, topic: str) -> None:
    change = effect("FindCoordinator", 6, {"keyType": key_type, "coordinatorKeys": ["x"]})
    assert (change.changes, change.unless_topic) == (False, topic)


@pytest.mark.parametrize(
    ("api", "version", "value"),
    [
        ("Metadata", 12, {"topics": [{"name": "orders"}], "allowAutoTopicCreation": False}),
        ("Metadata", 0, {"topics": []}),
        ("Fetch", 12, {"replicaId": -1}),
        ("ListOffsets", 1, {"replicaId": -1}),
    ],
)
def test_what_only_reads_needs_no_word(api: str, version: int, value: dict[str, object]) -> None:
    assert not effect(api, version, value).changes
