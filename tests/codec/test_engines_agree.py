"""The fast engines and the careful one, on every layout of the catalog: the same bytes, values and types."""

from enum import IntEnum
from random import Random
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest

import kafkascope
from kafkascope.codec.fast.fast_encode import compile_encoder
from kafkascope.codec.message import decode_part
from kafkascope.codec.result import UNKNOWN_TAGS
from kafkascope.codec.write import Write
from kafkascope.schema.layouts.layout import layout
from tests.support.pairs import CHUNKS, Place, chunk_of, every_place
from tests.support.values import random_value
from tests.support.variety import careful, fast_engines, lengthened, same

CASES = 18
SEED = 4


def values_of(place: Place) -> list[dict[str, Any]]:
    """Boundary values, random ones, and ones with long arrays: those are read many elements at a time."""
    known = layout(*place)
    values = [random_value(known, case) for case in range(CASES)]
    random = Random(f"{place} {SEED}")
    # 15 to 17 and 126 to 128 elements are where counts are read in another way.
    sizes = [(6, 9), (6, 40), (15, 17), (126, 128), (255, 300)]
    return values + [lengthened(known, values, random, size) for size in sizes]


def has_unknown_tags(value: Any) -> bool:
    if isinstance(value, dict):
        return UNKNOWN_TAGS in value or any(map(has_unknown_tags, value.values()))
    return isinstance(value, list) and any(map(has_unknown_tags, value))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_all_engines_write_and_read_the_same(chunk: int) -> None:
    for place in chunk_of(every_place(), chunk):
        name, version, release = place
        known = layout(name, version, release)
        engines, fast_encode = fast_engines(known), compile_encoder(known)
        for case, value in enumerate(values_of(place)):
            where = f"{place}, case {case}, seed {SEED}"
            data = Write(known).message(value)
            walked = careful(name, version, data, release)
            assert walked.exact, f"{where}: {walked.reasons}"
            assert same(walked.value, value), where
            if has_unknown_tags(value):
                # The fast engines leave these to the careful one.
                continue
            # No surprise: all that Kafka itself writes is read and written by the fast engines.
            assert fast_encode(value) == data, where
            for engine, read in engines.items():
                decoded = read(data, 0)
                assert decoded is not None, f"{where}, {engine}"
                assert same(decoded.value, value), f"{where}, {engine}"
                assert decoded == walked, f"{where}, {engine}"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_engine_reads_from_the_middle_of_a_buffer(chunk: int) -> None:
    """Frames hold a header before the body: a position other than 0 changes nothing."""
    for place in chunk_of(every_place(), chunk):
        name, version, release = place
        known = layout(name, version, release)
        value = lengthened(known, [random_value(known, case) for case in (9, 10, 11)], Random(SEED), (6, 20))
        data = b"\xff" * 11 + kafkascope.encode(name, version, value, release)
        for engine, read in fast_engines(known).items():
            decoded = read(data, 11)
            assert decoded is not None, (place, engine)
            assert same(decoded.value, value), (place, engine)
        part, part_end = decode_part(name, version, data, 11, release)
        assert part_end == len(data), place
        assert same(part.value, value), place


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_decoded_values_share_nothing_that_can_be_changed(chunk: int) -> None:
    """Defaults and repeated elements are new objects each time: changing one value changes no other."""
    for place in chunk_of(every_place(), chunk):
        name, version, release = place
        known = layout(name, version, release)
        value = lengthened(known, [random_value(known, case) for case in (0, 9, 10)], Random(SEED), (6, 20))
        data = kafkascope.encode(name, version, value, release)
        for engine, read in fast_engines(known).items():
            first, second = read(data, 0), read(data, 0)
            assert first is not None and second is not None, (place, engine)
            seen = [id(item) for item in containers([first.value, second.value])]
            assert len(seen) == len(set(seen)), (place, engine)


def containers(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value, *(inner for item in value.values() for inner in containers(item))]
    if isinstance(value, list):
        return [value, *(inner for item in value for inner in containers(item))]
    return []


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_missing_fields_are_their_defaults(chunk: int) -> None:
    for name, version, release in chunk_of(every_place(), chunk):
        known = layout(name, version, release)
        assert not [f.name for f in known.fields if f.default == "null" and not f.nullable], (name, version)
        whole = {field.name: field.default_value() for field in known.fields}
        data = kafkascope.encode(name, version, {}, release)
        assert data == kafkascope.encode(name, version, whole, release), (name, version)
        assert same(kafkascope.decode(name, version, data, release).value, whole), (name, version)


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_reads_any_kind_of_buffer(kind: type) -> None:
    value = {"clientSoftwareName": "aaa", "clientSoftwareVersion": "1"}
    data = kafkascope.encode("ApiVersionsRequest", 3, value)
    assert kafkascope.decode("ApiVersionsRequest", 3, kind(data)).value == value


def test_takes_tuples_and_any_mapping() -> None:
    plain: dict[str, Any] = {"topics": [{"name": "a"}], "responsePartitionLimit": 5, "cursor": None}
    other: Any = MappingProxyType({**plain, "topics": (MappingProxyType({"name": "a"}),)})
    assert kafkascope.encode("DescribeTopicPartitionsRequest", 0, other) == kafkascope.encode(
        "DescribeTopicPartitionsRequest", 0, plain
    )


# (message, version, path of the field, a value of the wrong type or size, what the error says behind the path)
WRONG: list[tuple[str, int, str, Any, str]] = [
    ("ShareFetchRequest", 2, "shareSessionEpoch", "12", "expected int32, got a str"),
    ("ShareFetchRequest", 2, "shareSessionEpoch", True, "expected int32, got a bool"),
    ("ShareFetchRequest", 2, "shareSessionEpoch", 1.0, "expected int32, got a float"),
    ("ShareFetchRequest", 2, "shareSessionEpoch", 2**31, "2147483648 doesn't fit int32"),
    ("ShareFetchRequest", 2, "shareAcquireMode", -129, "-129 doesn't fit int8"),
    # Python refuses to write out more than 4,300 digits.
    ("ShareFetchRequest", 2, "shareAcquireMode", 10**5000, "a number of more than 64 bits doesn't fit int8"),
    ("ShareFetchRequest", 2, "isRenewAck", 1, "expected true or false, got an int"),
    ("ShareFetchRequest", 2, "groupId", b"g", "expected a string, got a bytes"),
    ("ShareFetchRequest", 2, "groupId", "x" * 32_768, "string of 32768 bytes; Kafka's limit is 32767"),
    ("ShareFetchRequest", 2, "groupId", "\ud800", "a lone surrogate, which UTF-8 can't encode"),
    ("ShareFetchRequest", 2, "topics", None, "null, which version 2 doesn't allow"),
    ("ShareFetchRequest", 2, "topics", {}, "expected a list of struct, got a dict"),
    ("ShareFetchRequest", 2, "topics[0]", [], "expected an object, got a list"),
    ("ShareFetchRequest", 2, "topics[0].topicId", str(UUID(int=0)), "expected a uuid, got a str"),
    ("ShareFetchRequest", 2, "topics[0].topicID", 1, "no such field; did you mean topicId?"),
    ("ShareFetchRequest", 1, "isRenewAck", True, "no such field in version 1; it is in versions 2+"),
    ("ShareFetchRequest", 0, "topics[0].partitions[0].acknowledgementBatches[0].acknowledgeTypes[1]", False,
     "expected int8, got a bool"),
    ("SaslAuthenticateRequest", 2, "authBytes", "c2VjcmV0", "expected bytes, got a str"),
    ("AlterClientQuotasRequest", 1, "entries[0].ops[0].value", "1", "expected float64, got a str"),
    ("AlterClientQuotasRequest", 1, "entries[0].ops[0].value", 10**400, "doesn't fit float64"),
    ("FetchRequest", 17, "replicaState.replicaId", -1.0, "expected int32, got a float"),
    ("FetchRequest", 17, "replicaState.replicaEpoch", True, "expected int64, got a bool"),
    ("HeartbeatRequest", 0, UNKNOWN_TAGS, [{"tag": 1, "data": b""}], "version 0 isn't flexible and has no tags"),
    ("HeartbeatRequest", 4, UNKNOWN_TAGS, {"tag": 1}, "expected a list, got a dict"),
    ("HeartbeatRequest", 4, f"{UNKNOWN_TAGS}[0]", {"tag": "1", "data": b""}, "an object with `tag` and `data`"),
    ("HeartbeatRequest", 4, f"{UNKNOWN_TAGS}[0]", {"tag": True, "data": b""}, "an object with `tag` and `data`"),
    ("HeartbeatRequest", 4, f"{UNKNOWN_TAGS}[0]", {"tag": -1, "data": b""}, "an object with `tag` and `data`"),
    ("HeartbeatRequest", 4, f"{UNKNOWN_TAGS}[0].tag", {"tag": 2**31, "data": b""}, "tag 2147483648"),
    ("HeartbeatRequest", 4, f"{UNKNOWN_TAGS}[0].tag", {"tag": 10**5000, "data": b""}, "tag a number of more than 64"),
    ("FetchRequest", 17, f"{UNKNOWN_TAGS}[0].tag", {"tag": 0, "data": b""}, "tag 0 is a field of this version"),
]  # fmt: skip


def wrong_id(case: tuple[str, int, str, Any, str]) -> str:
    return f"{case[2]}-{type(case[3]).__name__}"


@pytest.mark.parametrize("case", WRONG, ids=wrong_id)
def test_encode_error_names_the_place_and_what_is_wanted(case: tuple[str, int, str, Any, str]) -> None:
    name, version, path, content, says = case
    spot = path.removesuffix(".tag") if UNKNOWN_TAGS in path else path
    value: Any = content
    for part in reversed(spot.split(".")):
        field, _, index = part.partition("[")
        # Elements that are right stand before the wrong one.
        value = {field: [*([1] * int(index[:-1])), value] if index else value}
    with pytest.raises(kafkascope.EncodeError) as caught:
        kafkascope.encode(name, version, value)
    text = str(caught.value)
    assert text.startswith(f"{name} v{version}, {path}: "), text
    assert says in text
    assert "\n" not in text


IN_A_COMPLETE_VALUE = [
    case for case in WRONG if "[" not in case[2] and case[2].split(".")[0] in random_value(layout(case[0], case[1]), 9)
]


@pytest.mark.parametrize("case", IN_A_COMPLETE_VALUE, ids=wrong_id)
def test_a_complete_value_with_one_wrong_field_is_refused_too(case: tuple[str, int, str, Any, str]) -> None:
    """The compiled encoder writes complete values: it must not let through what the careful one refuses."""
    name, version, path, content, says = case
    value = holder = random_value(layout(name, version), 9)
    *outer, last = path.split(".")
    for part in outer:
        holder = holder[part]
    holder[last] = content
    with pytest.raises(kafkascope.EncodeError) as caught:
        kafkascope.encode(name, version, value)
    assert says in str(caught.value)


@pytest.mark.parametrize("wrong", [{"replicaId": -1.0, "replicaEpoch": -1}, {"replicaId": -1, "replicaEpoch": -1.0}])
def test_a_tagged_struct_of_wrong_types_does_not_pass_for_its_default(wrong: dict[str, Any]) -> None:
    """-1.0 == -1, but a float isn't an int32."""
    with pytest.raises(kafkascope.EncodeError, match="got a float"):
        kafkascope.encode("FetchRequest", 17, {"replicaState": wrong})


def test_an_empty_tuple_in_a_tag_is_the_default_and_is_not_written() -> None:
    # protocol note 17
    assert kafkascope.encode("ApiVersionsResponse", 3, {"supportedFeatures": ()}) == kafkascope.encode(
        "ApiVersionsResponse", 3, {}
    )


def test_an_int_enum_in_a_tag_is_the_default_and_is_not_written() -> None:
    # protocol note 17
    class Type(IntEnum):
        BROKER = 0

    known = layout("PartitionRecord", 0)
    assert [field.name for field in known.fields if field.tag == 0] == ["leaderRecoveryState"]
    assert kafkascope.encode("PartitionRecord", 0, {"leaderRecoveryState": Type.BROKER}) == kafkascope.encode(
        "PartitionRecord", 0, {}
    )


def test_errors_never_hold_values() -> None:
    secret = "hunter2"  # noqa: S105
    wrong: list[tuple[str, int, dict[str, Any]]] = [
        ("SaslAuthenticateRequest", 2, {"authBytes": secret}),
        ("AlterConfigsRequest", 2, {"resources": [{"configs": [{"name": "n", "value": secret.encode()}]}]}),
        ("AlterConfigsRequest", 2, {"resources": [{"configs": secret}]}),
        ("AlterConfigsRequest", 2, {"validateOnly": secret}),
    ]
    for name, version, value in wrong:
        with pytest.raises(kafkascope.EncodeError) as caught:
            kafkascope.encode(name, version, value)
        assert secret not in str(caught.value)
