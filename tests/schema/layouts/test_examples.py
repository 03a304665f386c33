"""Every (message, version) has an example: it can be encoded, says nothing impossible, and tells of the one world."""

import json
from collections import defaultdict
from collections.abc import Iterator
from struct import Struct
from typing import Any, NamedTuple
from uuid import UUID

import crc32c
import pytest

from kafkascope.codec.json_form import from_json, parse_uuid, to_json
from kafkascope.codec.message import decode, decode_part, encode
from kafkascope.codec.records.record_data import decode_records
from kafkascope.schema.catalog import message
from kafkascope.schema.layouts import examples
from kafkascope.schema.layouts.examples import example
from kafkascope.schema.layouts.layout import ZERO_UUID, LayoutField, layout
from kafkascope.schema.values import NamedValues, named_values
from kafkascope.schema.versions import parse_versions
from tests.support.pairs import Place, every_pair, every_place

ORDERS, PAYMENTS = parse_uuid("ZRMnDiaeTTeyp03kUua0OA"), parse_uuid("NvZ1zIHnTvWo4l2UDtkEdQ")
TOPICS = {"orders": ORDERS, "payments": PAYMENTS}
NOT_ASKED_FOR = -(2**31)
LAST_OFFSET, LOG_END_OFFSET = 1041, 1042
KEY, VALUE = b"order-1001", b'{"orderId":1001,"total":49.9}'


class Held(NamedTuple):
    """A field of an example, what it holds, and the struct that it stands in."""

    title: str
    path: tuple[str, ...]
    field: LayoutField
    value: Any
    siblings: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.title} {'.'.join(self.path)} is {self.value!r}"


def oldest_release(name: str, version: int) -> str:
    return message(name).releases_of(version)[0].first


ALL: list[Place] = [*every_place(), *((name, version, oldest_release(name, version)) for name, version in every_pair())]


def held_fields(places: list[Place] = ALL) -> Iterator[Held]:
    for name, version, release in places:
        known = layout(name, version, release)
        yield from _held(f"{known.title} ({release})", known.fields, example(name, version, release), ())


def _held(title: str, fields: tuple[LayoutField, ...], value: dict[str, Any], above: tuple[str, ...]) -> Iterator[Held]:
    for field in fields:
        content, path = value[field.name], (*above, field.source.name)
        yield Held(title, path, field, content, value)
        if field.type == "struct" and content is not None:
            for item in content if field.array else [content]:
                yield from _held(title, field.fields, item, path)


def structs(*names: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every struct, the outermost too, that has all fields of these names."""
    for name, version, release in ALL:
        known = layout(name, version, release)
        value = example(name, version, release)
        inner = _held(known.title, known.fields, value, ())
        lists = (held.value if held.field.array else [held.value] for held in inner if held.field.type == "struct")
        for struct in (value, *(item for items in lists for item in items or [] if item is not None)):
            if all(field_name in struct for field_name in names):
                yield known.title, struct


def one_of_each(items: Any) -> list[Any]:
    return items if isinstance(items, list) else [items]


def test_every_example_is_encoded_and_decoded_to_itself() -> None:
    for name, version, release in ALL:
        value = example(name, version, release)
        decoded = decode(name, version, encode(name, version, value, release), release)
        assert decoded.exact, f"{name} v{version} {release}: {decoded.reasons}"
        assert decoded.value == value, f"{name} v{version} {release}"
    assert len(ALL) > 1700


def test_every_example_is_valid_json_that_reads_back() -> None:
    for name, version, release in ALL:
        value = example(name, version, release)
        text = json.dumps(to_json(name, version, value, release), allow_nan=False)
        again = from_json(name, version, json.loads(text), release)
        assert encode(name, version, again, release) == encode(name, version, value, release), f"{name} v{version}"


def test_each_call_gives_a_new_value() -> None:
    example("FetchRequest", 17)["topics"][0]["partitions"].clear()
    assert example("FetchRequest", 17)["topics"][0]["partitions"]


def test_the_longest_place_wins_over_a_name() -> None:
    assert example("FetchResponse", 12)["responses"][0]["partitions"][0]["highWatermark"] == LOG_END_OFFSET
    assert example("DescribeQuorumResponse", 1)["topics"][0]["partitions"][0]["highWatermark"] == 284_729


def test_older_releases_get_their_own_names() -> None:
    assert "acceptableRecoveryLag" in example("StreamsGroupHeartbeatResponse", 0, "4.2")
    assert "acceptableRecoveryLagLegacy" in example("StreamsGroupHeartbeatResponse", 0)


def test_every_line_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that no field takes is a misspelt place."""
    used: set[tuple[str, int]] = set()
    line_value = examples.line_value

    def noting(field: LayoutField, place: str, version: int) -> Any:
        value = line_value(field, place, version)
        while value is not examples.NOT_WRITTEN:
            for at, (versions, written) in enumerate(examples.written_lines().get(place, ())):
                if version in parse_versions(versions) and examples.fits(field, json.loads(written)):
                    used.add((place, at))
                    return value
            place = place.partition(".")[2]
        return value

    monkeypatch.setattr(examples, "line_value", noting)
    for place in ALL:
        example(*place)
    written = {(place, at) for place, rows in examples.written_lines().items() for at in range(len(rows))}
    assert not written - used


def test_every_name_in_an_object_is_a_field(monkeypatch: pytest.MonkeyPatch) -> None:
    given_at: dict[str, set[str]] = defaultdict(set)
    known_at: dict[str, set[str]] = defaultdict(set)
    struct = examples._struct

    def noting(fields: tuple[LayoutField, ...], values: dict[str, Any], place: str, version: int) -> dict[str, Any]:
        name = place.rpartition(".")[2]
        given_at[name] |= values.keys()
        known_at[name] |= {field.source.name for field in fields}
        return struct(fields, values, place, version)

    monkeypatch.setattr(examples, "_struct", noting)
    for place in ALL:
        example(*place)
    unknown = {name: given_at[name] - known_at[name] for name in given_at if given_at[name] - known_at[name]}
    assert not unknown


def test_no_number_or_text_goes_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line says each value; without one may be flags, tagged fields, and null where Kafka's default is null."""
    missing: set[str] = set()
    default = examples._default

    def noting(field: LayoutField, place: str, version: int) -> Any:
        if (
            field.tag is None
            and field.type not in ("struct", "bool")
            and (field.default, field.nullable) != ("null", True)
        ):
            missing.add(place)
        return default(field, place, version)

    monkeypatch.setattr(examples, "_default", noting)
    for place in ALL:
        example(*place)
    assert not missing


def test_every_answer_is_a_success() -> None:
    for held in held_fields():
        name = held.path[-1].lower()
        if name.endswith("errorcode") or name in ("throttletimems", "error"):
            assert held.value == 0, str(held)
        if name.endswith("errormessage"):
            assert held.value is None or (held.value == "" and not held.field.nullable), str(held)


def test_coded_fields_hold_codes_that_the_version_knows() -> None:
    checked = 0
    for name, version, release in ALL:
        known = layout(name, version, release)
        for held in _held(known.title, known.fields, example(name, version, release), ()):
            for named in named_values(known.message, held.path, version):
                if named.kind in ("set", "strings") and applies(named, held):
                    codes = {str(int(v.value)) if isinstance(v.value, int) else v.value for v in named.values}
                    values = [str(int(v) if isinstance(v, bool) else v) for v in one_of_each(held.value)]
                    if held.field.type != "uuid":
                        assert set(values) <= codes, f"{held}: {named.name} has {codes}"
                        checked += len(values)
    assert checked > 1000


def applies(named: NamedValues, held: Held) -> bool:
    if named.condition is None:
        return True
    sibling, expected = named.condition
    return str(held.siblings.get(sibling[:1].lower() + sibling[1:])) == expected


def test_names_and_ids_are_those_of_one_world() -> None:
    internal = {"order-processors-totals-changelog", "__cluster_metadata"}
    known: dict[str, set[Any]] = {
        "topicName": {*TOPICS, *internal},
        "groupId": {"order-processors"},
        "brokerId": {-1, -2, 1, 2, 3, 101, 102, 103},
        "producerId": {-1, 4000, 4001, 5000},  # 4001 comes from the block 4000 to 4999
        "transactionalId": {"checkout-1"},
    }
    for held in held_fields():
        entity = held.field.source.entity
        if entity in known and held.field.type != "struct" and held.value is not None:
            assert {str(v) for v in one_of_each(held.value)} <= {str(v) for v in known[entity]}, str(held)
        if held.path[-1] == "TopicId":
            assert held.value in (*TOPICS.values(), ZERO_UUID), str(held)


@pytest.mark.parametrize("name", ["topicName", "name", "topic"])
def test_a_topic_id_stands_beside_its_own_name(name: str) -> None:
    pairs = [(title, struct[name], struct["topicId"]) for title, struct in structs(name, "topicId")]
    pairs = [(title, topic, id_) for title, topic, id_ in pairs if topic is not None and id_ != ZERO_UUID]
    assert pairs or name == "topic"
    for title, topic, id_ in pairs:
        assert TOPICS[topic] == id_, title


def test_topics_are_asked_for_by_name_or_by_id_never_by_both() -> None:
    for name in ("MetadataRequest", "DeleteTopicsRequest"):
        versions = [version for version in message(name).all_versions() if version >= 6]
        for topic in (topic for version in versions for topic in example(name, version)["topics"]):
            assert (topic["name"] is None) == (topic.get("topicId", ZERO_UUID) != ZERO_UUID), name


def test_offsets_are_in_order() -> None:
    for first, last in (
        ("firstOffset", "lastOffset"),
        ("startOffset", "endOffset"),
        ("logStartOffset", "baseOffset"),
        ("logStartOffset", "highWatermark"),
        ("lastStableOffset", "highWatermark"),
    ):
        bounds = [(title, struct[first], struct[last]) for title, struct in structs(first, last)]
        assert bounds
        for title, low, high in bounds:
            assert low <= high, f"{title}: {first} {low}, {last} {high}"


def test_leaders_and_in_sync_replicas_are_replicas() -> None:
    checked = 0
    for replicas, inside in (("replicaNodes", "isrNodes"), ("replicas", "isr"), ("replicas", "addingReplicas")):
        for title, struct in structs(replicas, inside):
            if struct[replicas] is not None:
                assert set(struct[inside]) <= set(struct[replicas]), title
                leader = struct.get("leaderId", struct.get("leader"))
                assert leader is None or leader in struct[replicas], title
                checked += 1
    assert checked > 50


def test_the_quorums_leader_is_a_voter_and_holds_what_is_committed() -> None:
    for version in message("DescribeQuorumResponse").all_versions():
        (topic,) = example("DescribeQuorumResponse", version)["topics"]
        (partition,) = topic["partitions"]
        ends = {voter["replicaId"]: voter["logEndOffset"] for voter in partition["currentVoters"]}
        leader_end = ends[partition["leaderId"]]
        assert topic["topicName"] == "__cluster_metadata"
        assert partition["highWatermark"] == sorted(ends.values())[len(ends) // 2] <= leader_end
        assert all(replica["logEndOffset"] <= leader_end for replica in partition["observers"])
        assert not ends.keys() & {replica["replicaId"] for replica in partition["observers"]}


def test_operations_are_given_only_when_asked_for() -> None:
    for held in held_fields():
        if held.path[-1].endswith("AuthorizedOperations"):
            assert held.value in (False, NOT_ASKED_FOR), str(held)


def test_acknowledgements_have_one_type_or_one_an_offset() -> None:
    batches = list(structs("acknowledgeTypes"))
    assert batches
    for title, batch in batches:
        assert len(batch["acknowledgeTypes"]) in (1, batch["lastOffset"] - batch["firstOffset"] + 1), title


def test_a_share_fetch_that_renews_asks_for_no_records() -> None:
    for version in message("ShareFetchRequest").all_versions():
        value = example("ShareFetchRequest", version)
        limits = [value.get(name, 0) for name in ("maxWaitMs", "minBytes", "maxBytes", "maxRecords")]
        assert not value.get("isRenewAck", False) or not any(limits)


def test_a_field_that_no_broker_sets_is_zero() -> None:
    # up to 4.4 GroupMetadataManager sets AcceptableRecoveryLag alone, which version 0 does not have
    assert example("StreamsGroupHeartbeatResponse", 0)["acceptableRecoveryLagLegacy"] == 0
    assert example("StreamsGroupHeartbeatResponse", 1)["acceptableRecoveryLag"] == 10000


def test_a_joining_member_holds_nothing_yet() -> None:
    for name, versions in (("ConsumerGroupHeartbeatRequest", (0, 1)), ("StreamsGroupHeartbeatRequest", (0, 1))):
        for version in versions:
            value = example(name, version)
            held = [value.get(tasks, []) for tasks in ("topicPartitions", "activeTasks", "standbyTasks", "warmupTasks")]
            assert value["memberEpoch"] == 0 and not any(held) and None not in held, f"{name} v{version}"


def test_member_ids_are_as_the_protocol_makes_them() -> None:
    for held in held_fields():
        if held.path[-1].lower() != "memberid" or not held.value:
            continue
        if held.value.startswith("checkout-"):
            assert str(UUID(held.value.removeprefix("checkout-"))) == held.value.removeprefix("checkout-")
        else:
            assert parse_uuid(held.value).version == 4, str(held)


@pytest.mark.parametrize(
    ("name", "magics", "offset"),
    [
        ("ProduceRequest", {0: 0, 2: 1, 3: 2}, 0),
        ("FetchResponse", {0: 0, 2: 1, 4: 2}, LAST_OFFSET),
        ("ShareFetchResponse", {0: 2}, LAST_OFFSET),
    ],
)
def test_record_data_is_one_record_of_the_magic_of_its_version(name: str, magics: dict[int, int], offset: int) -> None:
    for version in message(name).all_versions():
        (held,) = (held for held in held_fields([(name, version, None)]) if held.field.type == "records")
        records = decode_records(held.value)
        (batch,) = records.batches
        (record,) = batch.records or ()
        assert records.exact and batch.crc_ok, str(held)
        assert batch.magic == max((first, magic) for first, magic in magics.items() if first <= version)[1]
        assert (record.offset, record.key, record.value) == (offset, KEY, VALUE)
        for acquired in held.siblings.get("acquiredRecords", []):
            assert (acquired["firstOffset"], acquired["lastOffset"]) == (record.offset, batch.last_offset)


def test_an_answer_with_records_points_nowhere_else() -> None:
    """Leader, diverging epoch and snapshot are told to who asked the wrong broker or must truncate first."""
    checked = 0
    for held in held_fields():
        if held.path[-1] in ("DivergingEpoch", "CurrentLeader", "SnapshotId") and "records" in held.siblings:
            assert held.field.tag is None or held.value == held.field.default_value(), str(held)
            checked += held.field.tag is not None
    assert checked > 20


def test_a_request_and_its_answer_name_the_same_partitions() -> None:
    checked = 0
    for name, version in every_pair():
        if not name.endswith("Request"):
            continue
        answer = name.removesuffix("Request") + "Response"
        if version in message(answer).all_versions():
            requested, responded = partitions(name, version), partitions(answer, version)
            assert not requested or not responded or requested == responded, f"{name} v{version}"
            checked += bool(requested and responded)
    assert checked > 100


PARTITION_FIELDS = frozenset("Partition PartitionIndex PartitionId Index Partitions PartitionIndexes".split())


def partitions(name: str, version: int) -> set[int]:
    """The partitions that are asked about or told of; not those let go of, nor how many a changelog topic has."""
    kept = (held for held in held_fields([(name, version, None)]) if held.path[-1] in PARTITION_FIELDS)
    counted = (held for held in kept if not {"ForgottenTopicsData", "StateChangelogTopics"} & {*held.path})
    return {index for held in counted if held.field.type == "int32" for index in one_of_each(held.value)}


def test_a_fetched_snapshot_is_whole() -> None:
    for version in message("FetchSnapshotResponse").all_versions():
        partition = example("FetchSnapshotResponse", version)["topics"][0]["partitions"][0]
        (batch,) = decode_records(partition["unalignedRecords"]).batches
        assert batch.crc_ok and batch.is_control
        assert partition["size"] == partition["position"] + len(partition["unalignedRecords"])


INT16 = Struct(">h")


def test_what_consumers_say_in_classic_groups_can_be_read() -> None:
    """The bytes begin with their version; every member of the group gets what it subscribed to."""
    subscriptions = {"Metadata", "MemberMetadata", "subscription"}
    checked = 0
    for held in held_fields():
        if held.field.type != "bytes" or held.path[-1] not in {
            *subscriptions,
            "Assignment",
            "MemberAssignment",
            "assignment",
        }:
            continue
        kind = "Subscription" if held.path[-1] in subscriptions else "Assignment"
        decoded = decode(f"ConsumerProtocol{kind}", INT16.unpack_from(held.value)[0], held.value[2:])
        topics = (
            decoded.value["topics"] if kind == "Subscription" else [decoded.value["assignedPartitions"][0]["topic"]]
        )
        assert decoded.exact and topics == ["orders"], str(held)
        checked += 1
    assert checked > 20


def test_an_envelope_holds_a_request_its_principal_and_the_answer() -> None:
    wrapped = example("EnvelopeRequest", 0)
    header, at = decode_part("RequestHeader", 2, wrapped["requestData"], 0)
    inner = decode("IncrementalAlterConfigsRequest", 1, wrapped["requestData"][at:])
    assert (header.value["requestApiKey"], header.value["requestApiVersion"]) == (44, 1)
    assert inner.exact and inner.value == example("IncrementalAlterConfigsRequest", 1)
    principal = decode(
        "DefaultPrincipalData", INT16.unpack_from(wrapped["requestPrincipal"])[0], wrapped["requestPrincipal"][2:]
    )
    assert principal.exact and principal.value == example("DefaultPrincipalData", 0)
    answer = example("EnvelopeResponse", 0)["responseData"]
    answered, at = decode_part("ResponseHeader", 1, answer, 0)
    assert answered.value == {"correlationId": header.value["correlationId"]}
    assert decode("IncrementalAlterConfigsResponse", 1, answer[at:]).value == example(
        "IncrementalAlterConfigsResponse", 1
    )


def test_a_producer_snapshot_has_its_checksum() -> None:
    value = example("ProducerSnapshot", 1)
    # Version and checksum stand before what is summed.
    assert value["crc"] == crc32c.crc32c(encode("ProducerSnapshot", 1, value)[4:])


def test_plain_credentials_are_alices() -> None:
    assert example("SaslAuthenticateRequest", 2)["authBytes"] == b"\0alice\0alice-secret"
