"""Kafka's JSON form, there and back: spellings, earlier names, uuids, what a request log leaves out, errors."""

import json
import math
from typing import Any
from uuid import UUID

import pytest

import kafkascope
from kafkascope.codec.json_form import parse_uuid, uuid_text
from kafkascope.codec.result import UNKNOWN_TAGS
from kafkascope.errors import EncodeError
from kafkascope.schema.layouts.layout import LayoutField, layout
from tests.support.pairs import CHUNKS, chunk_of, every_place
from tests.support.values import random_value
from tests.support.variety import same

ID = UUID("550e8400-e29b-41d4-a716-446655440000")


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_json_text_comes_back_as_the_same_bytes(chunk: int) -> None:
    for name, version, release in chunk_of(every_place(), chunk):
        known = layout(name, version, release)
        for case in range(14):
            value = random_value(known, case)
            written = json.loads(json.dumps(kafkascope.to_json(name, version, value, release), allow_nan=False))
            read = kafkascope.from_json(name, version, written, release)
            data = kafkascope.encode(name, version, value, release)
            assert kafkascope.encode(name, version, read, release) == data, (name, version, release, case)


def respelled(fields: tuple[LayoutField, ...], value: Any, which: int) -> Any:
    """Names replaced by one of their other spellings."""
    written = {}
    by_name = {field.name: field for field in fields}
    taken = {f.name for f in fields} | {f.kafka_name for f in fields}
    for name, content in value.items():
        field = by_name.get(name)
        if field is None:
            written[name] = content
            continue
        others = [field.kafka_name, *(alias for alias in field.aliases if alias not in taken)]
        inside = content
        if field.type == "struct" and content is not None:
            inside = (
                [respelled(field.fields, item, which) for item in content]
                if field.array
                else respelled(field.fields, content, which)
            )
        written[others[which % len(others)]] = inside
    return written


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_definitions_spelling_and_earlier_names_are_read(chunk: int) -> None:
    for name, version, release in chunk_of(every_place(), chunk):
        known = layout(name, version, release)
        value = random_value(known, 9)
        written = kafkascope.to_json(name, version, value, release)
        data = kafkascope.encode(name, version, value, release)
        for which in range(4):
            read = kafkascope.from_json(name, version, respelled(known.fields, written, which), release)
            assert kafkascope.encode(name, version, read, release) == data, (name, version, release, which)


# protocol note 29
@pytest.mark.parametrize(
    ("name", "version", "now", "before", "content"),
    [
        ("StreamsGroupHeartbeatResponse", 0, "acceptableRecoveryLagLegacy", "acceptableRecoveryLag", 7),
        ("TxnOffsetCommitRequest", 3, "generationIdOrMemberEpoch", "generationId", 7),
        ("AddPartitionsToTxnRequest", 3, "v3AndBelowTransactionalId", "transactionalId", "t"),
        ("ApiVersionsResponse", 0, "apiKeys", "ApiKeys", []),
    ],
)
def test_earlier_names_are_aliases(name: str, version: int, now: str, before: str, content: Any) -> None:
    assert kafkascope.from_json(name, version, {before: content}) == {now: content}
    assert kafkascope.from_json(name, version, {now: content}) == {now: content}


def test_a_present_name_wins_over_another_fields_earlier_one() -> None:
    # v1 has an int64 of the name that v0's int32 had
    read = kafkascope.from_json("StreamsGroupHeartbeatResponse", 1, {"acceptableRecoveryLag": 2**40})
    data = kafkascope.encode("StreamsGroupHeartbeatResponse", 1, read)
    assert kafkascope.decode("StreamsGroupHeartbeatResponse", 1, data).value["acceptableRecoveryLag"] == 2**40


def test_a_field_under_two_of_its_names_is_refused() -> None:
    with pytest.raises(EncodeError, match="HeartbeatRequest v0, GroupId: groupId occurs twice, under two of its names"):
        kafkascope.from_json("HeartbeatRequest", 0, {"groupId": "a", "GroupId": "a"})


def test_a_release_writes_its_own_names_and_reads_all() -> None:
    value = kafkascope.decode("VoteRequest", 0, kafkascope.encode("VoteRequest", 0, {"topics": [{"partitions": [{}]}]}))
    partition = kafkascope.to_json("VoteRequest", 0, value.value)["topics"][0]["partitions"][0]
    assert "replicaId" in partition
    old = kafkascope.decode("VoteRequest", 0, kafkascope.encode("VoteRequest", 0, value.value), release="3.8")
    written = kafkascope.to_json("VoteRequest", 0, old.value, "3.8")
    assert "candidateId" in written["topics"][0]["partitions"][0]
    assert kafkascope.from_json("VoteRequest", 0, written)["topics"][0]["partitions"][0]["replicaId"] == 0
    assert kafkascope.from_json("VoteRequest", 0, written, "3.8")["topics"][0]["partitions"][0]["candidateId"] == 0


# protocol note 21
def test_both_forms_of_a_uuid_are_read_and_kafkas_is_written() -> None:
    assert uuid_text(ID) == "VQ6EAOKbQdSnFkRmVUQAAA"
    for text in ("VQ6EAOKbQdSnFkRmVUQAAA", str(ID), str(ID).upper()):
        assert parse_uuid(text) == ID
        assert kafkascope.from_json("TopicRecord", 0, {"topicId": text}) == {"topicId": ID}
    assert uuid_text(UUID(int=0)) == "A" * 22
    assert uuid_text(UUID(int=2**128 - 1)) == "_" * 21 + "w"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "VQ6EAOKbQdSnFkRmVUQAA",
        "VQ6EAOKbQdSnFkRmVUQAAA==",
        "VQ6EAOKbQdSnFkRmVUQAA!",
        "VQ6EAOKbQdSnFkRmVUQAAé",
        "550e8400e29b41d4a716446655440000",
        "550e8400-e29b-41d4-a716-44665544000g",
        "{50e8400-e29b-41d4-a716-44665544000}",
        "550e84-00e29b-41d4-a716-446655440000",
        "+50e8400-e29b-41d4-a716-446655440000",
    ],
)
def test_what_is_no_uuid_is_refused(text: str) -> None:
    with pytest.raises(
        EncodeError, match="TopicRecord v0, topicId: not a uuid; expected 22 characters of base64 or 36 with dashes"
    ):
        kafkascope.from_json("TopicRecord", 0, {"topicId": text})


def test_bytes_are_base64() -> None:
    written = kafkascope.to_json("SaslAuthenticateRequest", 0, {"authBytes": b"\xfb\xff\xfe"})
    assert written == {"authBytes": "+//+"}
    assert kafkascope.from_json("SaslAuthenticateRequest", 0, written) == {"authBytes": b"\xfb\xff\xfe"}
    for wrong in ("+//", "a b=", "!!!!", "+//+é"):
        with pytest.raises(EncodeError, match="SaslAuthenticateRequest v0, authBytes: not base64"):
            kafkascope.from_json("SaslAuthenticateRequest", 0, {"authBytes": wrong})


def test_tagged_fields_at_their_default_are_left_out() -> None:
    value = kafkascope.decode("ApiVersionsResponse", 3, kafkascope.encode("ApiVersionsResponse", 3, {})).value
    assert list(kafkascope.to_json("ApiVersionsResponse", 3, value)) == ["errorCode", "apiKeys", "throttleTimeMs"]
    written = kafkascope.to_json("ApiVersionsResponse", 3, {**value, "finalizedFeaturesEpoch": 0})
    assert written["finalizedFeaturesEpoch"] == 0


@pytest.mark.parametrize(
    ("number", "written"), [(math.inf, "Infinity"), (-math.inf, "-Infinity"), (1.5, 1.5), (0.0, 0.0)]
)
def test_numbers_that_json_lacks_are_words(number: float, written: Any) -> None:
    value = {"entity": [], "key": "k", "value": number, "remove": False}
    assert kafkascope.to_json("ClientQuotaRecord", 0, value)["value"] == written
    assert kafkascope.from_json("ClientQuotaRecord", 0, {"value": written}) == {"value": number}


def test_not_a_number_comes_back() -> None:
    value = {"entity": [], "key": "k", "value": math.nan, "remove": False}
    written = kafkascope.to_json("ClientQuotaRecord", 0, value)
    assert written["value"] == "NaN"
    assert same(kafkascope.from_json("ClientQuotaRecord", 0, written)["value"], math.nan)


PRODUCE = {
    "transactionalId": None,
    "acks": -1,
    "timeoutMs": 1500,
    "topicData": [
        {"name": "t", "partitionData": [{"index": 0, "records": b"abc"}, {"index": 1, "records": None}]},
    ],
}


def test_record_data_is_base64_or_its_size() -> None:
    whole = kafkascope.to_json("ProduceRequest", 9, PRODUCE)["topicData"][0]["partitionData"]
    assert whole == [{"index": 0, "records": "YWJj"}, {"index": 1, "records": None}]
    sizes = kafkascope.to_json("ProduceRequest", 9, PRODUCE, records="size")["topicData"][0]["partitionData"]
    assert sizes == [{"index": 0, "recordsSizeInBytes": 3}, {"index": 1, "records": None}]


def test_a_request_log_without_its_records_says_so() -> None:
    written = kafkascope.to_json("ProduceRequest", 9, PRODUCE, records="size")
    with pytest.raises(EncodeError) as caught:
        kafkascope.from_json("ProduceRequest", 9, written)
    assert str(caught.value) == (
        "ProduceRequest v9, topicData[0].partitionData[0].recordsSizeInBytes: a request log omits record data; "
        "pass the records as base64"
    )


# Bodies in the form of a broker's request log (kafka.request.logger at DEBUG).
LOGGED: list[tuple[str, int, str]] = [
    ("ApiVersionsRequest", 4, '{"clientSoftwareName":"apache-kafka-java","clientSoftwareVersion":"4.3.1"}'),
    (
        "ShareFetchRequest",
        2,
        '{"groupId":"g","memberId":"cV3KQsZpRt2cYdEofgsalQ","shareSessionEpoch":1,"maxWaitMs":500,"minBytes":1,'
        '"maxBytes":52428800,"maxRecords":500,"batchSize":500,"shareAcquireMode":0,"isRenewAck":false,"topics":'
        '[{"topicId":"VQ6EAOKbQdSnFkRmVUQAAA","partitions":[{"partitionIndex":0,"acknowledgementBatches":'
        '[{"firstOffset":0,"lastOffset":9,"acknowledgeTypes":[1]}]}]}],"forgottenTopicsData":[]}',
    ),
    (
        "MetadataRequest",
        13,
        '{"topics":[{"topicId":"AAAAAAAAAAAAAAAAAAAAAA","name":"t"}],"allowAutoTopicCreation":true,'
        '"includeTopicAuthorizedOperations":false}',
    ),
    ("MetadataRequest", 13, '{"topics":null,"allowAutoTopicCreation":true,"includeTopicAuthorizedOperations":false}'),
]


@pytest.mark.parametrize(("name", "version", "line"), LOGGED)
def test_a_line_of_a_request_log_can_be_pasted_in(name: str, version: int, line: str) -> None:
    logged = json.loads(line)
    data = kafkascope.encode(name, version, kafkascope.from_json(name, version, logged))
    decoded = kafkascope.decode(name, version, data)
    assert json.dumps(kafkascope.to_json(name, version, decoded.value), separators=(",", ":")) == line


def test_unknown_tags_stand_under_their_own_name() -> None:
    value = {**random_value(layout("HeartbeatRequest", 4), 9), UNKNOWN_TAGS: [{"tag": 9, "data": b"\xff"}]}
    written = kafkascope.to_json("HeartbeatRequest", 4, value)
    assert written["_unknownTaggedFields"] == [{"tag": 9, "data": "/w=="}]
    assert same(kafkascope.from_json("HeartbeatRequest", 4, written), value)


@pytest.mark.parametrize(
    ("name", "version", "value", "read"),
    [
        ("ShareFetchRequest", 1, {"shareAcquireMode": 0, "IsRenewAck": False, "minBytes": 1}, {"minBytes": 1}),
        ("ShareFetchRequest", 1, {"shareAcquireMode": None}, {}),
        ("CreateTopicsRequest", 0, {"validateOnly": False}, {}),
        ("JoinGroupRequest", 0, {"rebalanceTimeoutMs": -1, "groupInstanceId": None}, {}),
        ("FetchRequest", 3, {"forgottenTopicsData": [], "rackId": "", "maxBytes": 5}, {"maxBytes": 5}),
        ("FetchRequest", 12, {"replicaState": {"replicaId": -1, "replicaEpoch": -1}}, {}),
        ("MetadataRequest", 9, {"topics": [{"name": "t", "topicId": "A" * 22}]}, {"topics": [{"name": "t"}]}),
    ],
)
def test_a_field_of_other_versions_is_dropped_at_its_default(name: str, version: int, value: Any, read: Any) -> None:
    # Java's FooDataJsonConverter.read takes it, and write throws for a value other than the default
    assert kafkascope.from_json(name, version, value) == read


@pytest.mark.parametrize(
    ("name", "version", "value", "path"),
    [
        ("ShareFetchRequest", 1, {"isRenewAck": True}, "isRenewAck"),
        ("ShareFetchRequest", 1, {"shareAcquireMode": False}, "shareAcquireMode"),
        ("JoinGroupRequest", 0, {"rebalanceTimeoutMs": 0}, "rebalanceTimeoutMs"),
        ("JoinGroupRequest", 0, {"groupInstanceId": ""}, "groupInstanceId"),
        ("FetchRequest", 12, {"replicaState": {"replicaId": 1}}, "replicaState"),
        ("MetadataRequest", 9, {"topics": [{"name": "t", "topicId": str(ID)}]}, r"topics\[0\].topicId"),
    ],
)
def test_a_field_of_other_versions_with_a_value_is_refused(name: str, version: int, value: Any, path: str) -> None:
    with pytest.raises(EncodeError, match=f"{name} v{version}, {path}: no such field in version {version}"):
        kafkascope.encode(name, version, kafkascope.from_json(name, version, value))


def test_with_a_release_a_field_of_other_versions_is_refused() -> None:
    read = kafkascope.from_json("ShareFetchRequest", 1, {"isRenewAck": False}, "4.1")
    with pytest.raises(EncodeError, match="isRenewAck: no such field"):
        kafkascope.encode("ShareFetchRequest", 1, read, "4.1")


# (message, version, JSON, path, what is said)
WRONG: list[tuple[str, int, Any, str, str]] = [
    ("HeartbeatRequest", 4, [], "", "expected an object, got a list"),
    ("HeartbeatRequest", 4, None, "", "expected an object, got null"),
    ("HeartbeatRequest", 4, {"groupId": 1}, "groupId", "expected a string, got a number"),
    ("HeartbeatRequest", 4, {"GenerationId": "1"}, "GenerationId", "expected int32, got a string"),
    ("HeartbeatRequest", 4, {"generationId": 1.0}, "generationId", "expected int32, got a number with a fraction"),
    ("HeartbeatRequest", 4, {"generationId": True}, "generationId", "expected int32, got true or false"),
    ("HeartbeatRequest", 4, {UNKNOWN_TAGS: {}}, UNKNOWN_TAGS, "expected a list, got an object"),
    (
        "HeartbeatRequest",
        4,
        {UNKNOWN_TAGS: [1]},
        f"{UNKNOWN_TAGS}[0]",
        "expected an object with `tag` and base64 `data`",
    ),
    ("HeartbeatRequest", 4, {UNKNOWN_TAGS: [{"tag": True, "data": ""}]}, f"{UNKNOWN_TAGS}[0]", "an object with `tag`"),
    ("HeartbeatRequest", 4, {UNKNOWN_TAGS: [{"tag": 1, "data": "?"}]}, f"{UNKNOWN_TAGS}[0].data", "not base64"),
    ("MetadataRequest", 9, {"topics": {}}, "topics", "expected a list of struct, got an object"),
    ("MetadataRequest", 9, {"topics": [{"name": "a"}, 5]}, "topics[1]", "expected an object, got a number"),
    (
        "MetadataRequest",
        9,
        {"topics": [{"name": "a"}, {"name": []}]},
        "topics[1].name",
        "expected a string, got a list",
    ),
    ("MetadataRequest", 9, {"allowAutoTopicCreation": 1}, "allowAutoTopicCreation", "expected true or false"),
    ("MetadataRequest", 9, {"allowAutoTopicCreation": "true"}, "allowAutoTopicCreation", "expected true or false"),
    ("TopicRecord", 0, {"topicId": 5}, "topicId", "expected uuid as text, got a number"),
    ("SaslAuthenticateRequest", 0, {"authBytes": [1]}, "authBytes", "expected bytes as text, got a list"),
    ("ClientQuotaRecord", 0, {"value": "1"}, "value", "expected float64, got a string"),
    ("ClientQuotaRecord", 0, {"value": False}, "value", "expected float64, got true or false"),
]


@pytest.mark.parametrize(("name", "version", "value", "path", "says"), WRONG)
def test_errors_name_the_path_as_it_was_spelled(name: str, version: int, value: Any, path: str, says: str) -> None:
    with pytest.raises(EncodeError) as caught:
        kafkascope.from_json(name, version, value)
    assert str(caught.value).startswith(f"{name} v{version}{', ' if path else ''}{path}: ")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"groupID": "g"}, "HeartbeatRequest v4, groupID: no such field; did you mean groupId?"),
        ({"Nonsense": 1}, "HeartbeatRequest v4, Nonsense: no such field"),
        ({"generationId": 2**31}, "HeartbeatRequest v4, generationId: 2147483648 doesn't fit int32"),
        ({"groupId": None}, "HeartbeatRequest v4, groupId: null, which version 4 doesn't allow"),
    ],
)
def test_what_json_may_say_but_the_message_may_not_is_said_by_encode(value: Any, says: str) -> None:
    with pytest.raises(EncodeError) as caught:
        kafkascope.encode("HeartbeatRequest", 4, kafkascope.from_json("HeartbeatRequest", 4, value))
    assert str(caught.value) == says


def test_json_in_error_messages_never_shows_content() -> None:
    with pytest.raises(EncodeError) as caught:
        kafkascope.from_json("AlterConfigsRequest", 2, {"resources": [{"configs": [{"value": ["hunter2"]}]}]})
    assert "hunter2" not in str(caught.value)
    assert str(caught.value) == "AlterConfigsRequest v2, resources[0].configs[0].value: expected a string, got a list"
