"""How values are laid into bytes: what implementations of the protocol got wrong, a test each."""

from typing import Any
from uuid import UUID

import pytest

import kafkascope
from kafkascope.codec.result import UNKNOWN_TAGS
from kafkascope.errors import DecodeError, EncodeError
from kafkascope.schema.layouts.layout import layout
from tests.support.hexes import hexes

ZERO = UUID(int=0)


def decode(name: str, version: int, text: str) -> kafkascope.Decoded:
    return kafkascope.decode(name, version, hexes(text))


# protocol note 15: nullable structs
def test_null_struct_is_one_byte_of_minus_one() -> None:
    data = hexes("""
        01          # topics: none
        000007d0    # response_partition_limit 2000
        ff          # cursor: null
        00          # no tags
    """)
    value = {"topics": [], "responsePartitionLimit": 2000, "cursor": None}
    assert kafkascope.decode("DescribeTopicPartitionsRequest", 0, data).value == value
    assert kafkascope.encode("DescribeTopicPartitionsRequest", 0, value) == data


def test_present_struct_starts_with_a_byte_of_one() -> None:
    data = hexes("""
        01          # topics: none
        000007d0    # response_partition_limit 2000
        01          # cursor: present
          02 61     #   topic_name "a"
          00000007  #   partition_index 7
          00        #   no tags
        00          # no tags
    """)
    value = {"topics": [], "responsePartitionLimit": 2000, "cursor": {"topicName": "a", "partitionIndex": 7}}
    assert kafkascope.decode("DescribeTopicPartitionsRequest", 0, data).value == value
    assert kafkascope.encode("DescribeTopicPartitionsRequest", 0, value) == data


@pytest.mark.parametrize(
    ("presence", "null"), [("fe", True), ("80", True), ("00", False), ("02", False), ("7f", False)]
)
def test_any_negative_presence_byte_is_null_but_not_exact(presence: str, null: bool) -> None:
    body = "" if null else "01 00000000 00"
    decoded = decode("DescribeTopicPartitionsRequest", 0, f"01 000007d0 {presence} {body} 00")
    assert (decoded.value["cursor"] is None) == null
    assert not decoded.exact
    assert "presence" in decoded.reasons[0]


@pytest.mark.parametrize("padding", range(100, 140))
def test_nullable_tagged_struct_of_around_127_bytes_keeps_its_size(padding: int) -> None:
    """KAFKA-18199: the size of the tag must count the presence byte, also where that makes it two bytes long."""
    value = {
        "classicMemberMetadata": {
            "sessionTimeoutMs": 1,
            "supportedProtocols": [{"name": "x" * padding, "metadata": b""}],
        }
    }
    empty = kafkascope.encode("ConsumerGroupMemberMetadataValue", 0, {})
    whole = kafkascope.decode("ConsumerGroupMemberMetadataValue", 0, empty).value | value
    data = kafkascope.encode("ConsumerGroupMemberMetadataValue", 0, whole)
    decoded = kafkascope.decode("ConsumerGroupMemberMetadataValue", 0, data, spans=True)
    assert decoded.exact
    assert decoded.value == whole
    size = next(span for span in decoded.spans if span.path == "classicMemberMetadata#size")
    written = data[size.start : size.end]
    # presence + session timeout + count + (length, name, length, metadata, tags) + tags
    content = 1 + 4 + 1 + ((1 if padding < 127 else 2) + padding + 1 + 1) + 1
    assert written == (bytes([content]) if content < 128 else bytes([content & 0x7F | 0x80, content >> 7]))
    assert len(data) - size.end == content


def test_null_in_a_tag_is_a_zero_byte() -> None:
    value = kafkascope.decode(
        "ConsumerGroupMemberMetadataValue", 0, kafkascope.encode("ConsumerGroupMemberMetadataValue", 0, {})
    ).value
    data = kafkascope.encode("ConsumerGroupMemberMetadataValue", 0, {**value, "classicMemberMetadata": None})
    assert data.endswith(hexes("01 00 01 00"))  # one tag, number 0, one byte, absent
    assert kafkascope.decode("ConsumerGroupMemberMetadataValue", 0, data).value["classicMemberMetadata"] is None


# protocol note 17: tags
def test_tag_at_its_default_is_not_written_zero_uuid_included() -> None:
    partition = {"partition": 1, "currentLeaderEpoch": 2, "fetchOffset": 3, "partitionMaxBytes": 9}
    plain = {"topics": [{"topicId": ZERO, "partitions": [partition]}]}
    spelled = {"topics": [{"topicId": ZERO, "partitions": [{**partition, "replicaDirectoryId": ZERO}]}]}
    other = {"topics": [{"topicId": ZERO, "partitions": [{**partition, "replicaDirectoryId": UUID(int=1)}]}]}
    data = kafkascope.encode("FetchRequest", 17, plain)
    assert kafkascope.encode("FetchRequest", 17, spelled) == data
    assert len(kafkascope.encode("FetchRequest", 17, other)) == len(data) + 18  # tag, size, 16 bytes


def test_unknown_tags_are_kept_and_merged_in_ascending_order() -> None:
    data = hexes("""
        0000                # error_code 0
        01                  # api_keys: none
        00000000            # throttle_time_ms 0
        04                  # four tags
        01 08 0000000000000005  # tag 1: finalized_features_epoch 5
        03 01 01            # tag 3: zk_migration_ready true
        05 02 abcd          # tag 5, unknown: 2 bytes
        8001 00             # tag 128, unknown: none
    """)
    decoded = kafkascope.decode("ApiVersionsResponse", 3, data)
    assert decoded.exact
    assert decoded.value["finalizedFeaturesEpoch"] == 5
    assert decoded.value["zkMigrationReady"] is True
    assert decoded.value[UNKNOWN_TAGS] == [{"tag": 5, "data": b"\xab\xcd"}, {"tag": 128, "data": b""}]
    assert [(tag.path, tag.tag, tag.data) for tag in decoded.unknown_tags] == [("", 5, b"\xab\xcd"), ("", 128, b"")]
    assert kafkascope.encode("ApiVersionsResponse", 3, decoded.value) == data
    # An unknown tag between known ones, given in any order, comes out in its place.
    old = {**decoded.value, UNKNOWN_TAGS: [{"tag": 128, "data": b""}, {"tag": 5, "data": b"\xab\xcd"}]}
    assert kafkascope.encode("ApiVersionsResponse", 3, old) == data


def test_a_tag_that_a_release_does_not_know_yet_is_an_unknown_one() -> None:
    # protocol note 26: 2.4 has ApiVersions v3, but no features in it.
    data = kafkascope.encode("ApiVersionsResponse", 3, {"finalizedFeaturesEpoch": 5, "zkMigrationReady": True})
    decoded = kafkascope.decode("ApiVersionsResponse", 3, data, release="2.7")
    assert decoded.value["finalizedFeaturesEpoch"] == 5
    assert decoded.value[UNKNOWN_TAGS] == [{"tag": 3, "data": b"\x01"}]
    oldest = kafkascope.decode("ApiVersionsResponse", 3, data, release="2.4")
    assert [tag["tag"] for tag in oldest.value[UNKNOWN_TAGS]] == [1, 3]
    for release, read in (("2.7", decoded), ("2.4", oldest)):
        assert read.exact
        assert kafkascope.encode("ApiVersionsResponse", 3, read.value, release) == data


# protocol note 18: what Java reads and changes; (message, version, hex, the value's part, what the reason says)
INEXACT: list[tuple[str, str, int, str, Any, str]] = [
    ("non-minimal length", "ApiVersionsRequest", 3, "8200 61 01 00",
     {"clientSoftwareName": "a"}, "compact length takes 2 bytes, 1 would do (offset 0)"),
    ("non-minimal count", "DescribeTopicPartitionsRequest", 0, "818000 00000000 ff 00",
     {"topics": []}, "compact count takes 3 bytes, 1 would do (offset 0)"),
    ("non-minimal tag count", "ApiVersionsRequest", 3, "01 01 8000", {}, "tag count takes 2 bytes"),
    ("explicit default", "ApiVersionsResponse", 3, "0000 01 00000000 01 03 01 00",
     {"zkMigrationReady": False}, "zkMigrationReady: tag 3 holds its default, which is not written"),
    ("out of order", "ApiVersionsResponse", 3, "0000 01 00000000 02 03 01 01 01 08 0000000000000005",
     {"finalizedFeaturesEpoch": 5, "zkMigrationReady": True}, "tag 1 is after tag 3"),
    ("duplicate", "ApiVersionsResponse", 3, "0000 01 00000000 02 01 08 0000000000000005 01 08 0000000000000006",
     {"finalizedFeaturesEpoch": 6}, "tag 1 is repeated"),
    ("bool of 2", "AlterConfigsRequest", 0, "00000000 02",
     {"validateOnly": True}, "validateOnly: bool is 2, written as 1"),
    ("wrong tag size", "ApiVersionsResponse", 3, "0000 01 00000000 02 01 07 0000000000000005 03 01 01",
     {"finalizedFeaturesEpoch": 5, "zkMigrationReady": True}, "tag size is 7, its content takes 8"),
    ("tag size past the frame", "ApiVersionsResponse", 3, "0000 01 00000000 01 03 7f 01",
     {"zkMigrationReady": True}, "tag size is 127, its content takes 1"),
    ("invalid UTF-8", "ApiVersionsRequest", 3, "03 61ff 01 00",
     {"clientSoftwareName": "a\ufffd"}, "clientSoftwareName: invalid UTF-8"),
    ("overlong UTF-8", "ApiVersionsRequest", 3, "03 c080 01 00", {}, "invalid UTF-8"),
    ("UTF-8 of a surrogate", "ApiVersionsRequest", 3, "04 eda080 01 00", {}, "invalid UTF-8"),
    ("array length -2", "MetadataRequest", 1, "fffffffe", {"topics": None}, "topics: count -2, written as -1"),
    ("string length -2", "FindCoordinatorResponse", 1, "00000000 0000 fffe 00000000 0000 00000000",
     {"errorMessage": None}, "length -2, written as -1"),
    ("trailing bytes", "ApiVersionsRequest", 3, "01 01 00 ffff", {}, "2 bytes after the message (offset 3)"),
    ("a compact length of -2", "MetadataRequest", 9, "ffffffff0f 00 00 00 00", {"topics": None}, "count"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "version", "text", "part", "reason"), [r[1:] for r in INEXACT], ids=[r[0] for r in INEXACT]
)
def test_reads_what_java_reads_and_says_that_it_is_not_exact(
    name: str, version: int, text: str, part: dict[str, Any], reason: str
) -> None:
    data = hexes(text)
    decoded = kafkascope.decode(name, version, data)
    assert decoded.value | part == decoded.value
    assert not decoded.exact
    assert any(reason in stated for stated in decoded.reasons), decoded.reasons
    assert kafkascope.encode(name, version, decoded.value) != data


# protocol note 19: nullable versions are not versions
@pytest.mark.parametrize(
    ("name", "field", "nullable", "not_nullable"),
    [
        ("OffsetFetchRequest", "topics", range(2, 8), range(2)),
        ("DescribeGroupsResponse", "groups", (), range(7)),
        ("MetadataRequest", "topics", range(1, 14), (0,)),
        ("ElectLeadersRequest", "topicPartitions", range(3), ()),
    ],
)
def test_null_is_allowed_in_the_nullable_versions_alone(
    name: str, field: str, nullable: range, not_nullable: range
) -> None:
    for version in nullable:
        data = kafkascope.encode(name, version, {field: None})
        assert kafkascope.decode(name, version, data).value[field] is None
    for version in not_nullable:
        with pytest.raises(EncodeError, match=f"{field}: null, which version {version} doesn't allow"):
            kafkascope.encode(name, version, {field: None})


def test_null_of_a_later_versions_nullable_element_is_refused_before_it() -> None:
    # CreateTopicsResponse configs: nullable from 5; MetadataResponse names: nullable from 12.
    element = next(field.fields for field in layout("MetadataResponse", 12).fields if field.name == "topics")
    assert [field.nullable for field in element if field.name == "name"] == [True]
    with pytest.raises(EncodeError, match=r"topics\[0\].name: null, which version 11 doesn't allow"):
        kafkascope.encode("MetadataResponse", 11, {"topics": [{"name": None}]})
    with pytest.raises(DecodeError, match=r"topics\[0\].name: length -1: null where null is not allowed"):
        # throttle, no brokers, no cluster id, controller; one topic: error, name null, and enough bytes for the rest
        decode("MetadataResponse", 11, "00000000 01 00 00000000 02 0000 00" + "00" * 24)


# protocol note 20
def test_metadata_v0_tells_an_empty_list_v1_null() -> None:
    assert decode("MetadataRequest", 0, "00000000").value == {"topics": []}
    assert decode("MetadataRequest", 1, "ffffffff").value == {"topics": None}
    assert decode("MetadataRequest", 1, "00000000").value == {"topics": []}
    with pytest.raises(DecodeError, match="null where null is not allowed"):
        decode("MetadataRequest", 0, "ffffffff")


# protocol note 21
@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16_382, 16_383, 16_384])
def test_compact_records_length_is_one_more(size: int) -> None:
    partition = {"index": 0, "records": b"r" * size}
    data = kafkascope.encode("ProduceRequest", 9, {"topicData": [{"name": "t", "partitionData": [partition]}]})
    length = size + 1
    groups = [length & 0x7F, length >> 7 & 0x7F, length >> 14]
    used = 1 if length < 128 else 2 if length < 16_384 else 3
    prefix = bytes([group | 0x80 for group in groups[: used - 1]] + [groups[used - 1]])
    assert bytes(4) + prefix + b"r" * size in data  # partition index, length, records
    assert kafkascope.decode("ProduceRequest", 9, data).value["topicData"][0]["partitionData"] == [partition]


def test_null_records_are_not_empty_records() -> None:
    for records, length in ((None, b"\x00"), (b"", b"\x01")):
        value = {"topicData": [{"name": "t", "partitionData": [{"index": 7, "records": records}]}]}
        data = kafkascope.encode("ProduceRequest", 9, value)
        assert hexes("00000007") + length + hexes("00 00 00") in data
        assert kafkascope.decode("ProduceRequest", 9, data).value["topicData"] == value["topicData"]


def test_uuid_in_json_is_unpadded_url_safe_base64() -> None:
    value = {"topics": [{"topicId": UUID("ffeeffee-ffee-ffee-ffee-ffeeffeeffee")}]}
    whole = kafkascope.decode("ShareFetchRequest", 2, kafkascope.encode("ShareFetchRequest", 2, value)).value
    written = kafkascope.to_json("ShareFetchRequest", 2, whole)
    assert written["topics"][0]["topicId"] == "_-7_7v_u_-7_7v_u_-7_7g"
    assert (
        kafkascope.from_json("ShareFetchRequest", 2, written)["topics"][0]["topicId"] == value["topics"][0]["topicId"]
    )


# protocol note 22
@pytest.mark.parametrize(
    ("name", "version", "text", "says"),
    [
        ("MetadataRequest", 0, "7fffffff", "topics: count 2147483647 needs 4294967294 bytes, 0 left (offset 4)"),
        ("MetadataRequest", 0, "00000002 0000", "topics: count 2 needs 4 bytes, 2 left (offset 4)"),
        ("MetadataRequest", 0, "80000000", "count -2147483648: null where null is not allowed (offset 0)"),
        ("MetadataRequest", 9, "ffffffff07", "topics: count 2147483646 needs"),
        ("MetadataRequest", 9, "ffffffffff01", "compact count is longer than 5 bytes (offset 0)"),
        ("MetadataRequest", 9, "ff", "compact count is cut off (offset 0)"),
        ("ApiVersionsRequest", 3, "01 01 ffffffff07", "tags need 4294967294 bytes, 0 left"),
        ("ApiVersionsRequest", 3, "01 01 01 05 ffffffff07", "tag5: size 2147483647 of tag 5, 0 bytes left"),
        ("ApiVersionsRequest", 3, "7f 61", "clientSoftwareName: string needs 126 bytes, 1 left (offset 1)"),
        ("ApiVersionsRequest", 3, "828002" + "61" * 32_769, "string of 32769 bytes; Kafka's limit is 32767"),
        ("SaslAuthenticateRequest", 0, "7fffffff", "authBytes: bytes needs 2147483647 bytes, 0 left (offset 4)"),
        ("SaslAuthenticateRequest", 0, "ffffffff", "authBytes: length -1: null where null is not allowed (offset 0)"),
        ("SaslAuthenticateRequest", 0, "", "length needs 4 bytes, 0 left (offset 0)"),
    ],
)
def test_rejects_lengths_and_counts_beyond_the_frame(name: str, version: int, text: str, says: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(name, version, text)
    assert str(caught.value).startswith(f"{name} v{version}")
    assert says in str(caught.value)


def test_the_longest_string_that_java_takes_is_taken() -> None:
    value = {"clientSoftwareName": "x" * 32_767, "clientSoftwareVersion": ""}
    data = kafkascope.encode("ApiVersionsRequest", 3, value)
    assert data[:3] == hexes("80 80 02")  # 32768: one more than its length
    assert kafkascope.decode("ApiVersionsRequest", 3, data).value == value


def test_errors_name_the_path_with_its_indexes() -> None:
    good = kafkascope.encode(
        "ShareFetchRequest",
        2,
        {"topics": [{"partitions": [{}, {"acknowledgementBatches": [{"acknowledgeTypes": [1, 2, 3]}]}]}]},
    )
    # Behind the three types: tags of batch, partition and topic, forgotten topics, tags.
    with pytest.raises(DecodeError) as caught:
        kafkascope.decode("ShareFetchRequest", 2, good[:-6])
    assert str(caught.value).startswith(
        "ShareFetchRequest v2, topics[0].partitions[1].acknowledgementBatches[0].acknowledgeTypes: "
        "count 3 needs 3 bytes, 2 left"
    )


def test_versions_and_messages_that_are_not_there_are_usage_errors() -> None:
    with pytest.raises(kafkascope.UsageError, match=r"ShareFetchRequest has no version 7; it has 0-2"):
        kafkascope.decode("ShareFetchRequest", 7, b"")
    with pytest.raises(
        kafkascope.UsageError, match=r"ShareFetchRequest v2 isn't in Kafka 4.1; releases that have it: 4.2\+"
    ):
        kafkascope.decode("ShareFetchRequest", 2, b"", release="4.1")
    with pytest.raises(kafkascope.NotFoundError, match="did you mean ShareFetchRequest"):
        kafkascope.encode("ShareFetchRequst", 2, {})
    with pytest.raises(kafkascope.UsageError, match=r"release 9\.9 isn't in the catalog"):
        kafkascope.encode("ShareFetchRequest", 2, {}, release="9.9")
