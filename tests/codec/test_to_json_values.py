"""`to_json` takes what `encode` takes, missing fields too, and refuses the rest with the same words."""

from enum import IntEnum
from typing import Any

import pytest

import kafkascope
from kafkascope.codec.result import UNKNOWN_TAGS
from kafkascope.errors import EncodeError


class Code(IntEnum):
    REBALANCE = 27


def test_missing_fields_are_written_as_their_defaults() -> None:
    value = kafkascope.from_json("ShareFetchRequest", 2, {"groupId": "g"})
    whole = kafkascope.decode("ShareFetchRequest", 2, kafkascope.encode("ShareFetchRequest", 2, value)).value
    assert kafkascope.to_json("ShareFetchRequest", 2, value) == kafkascope.to_json("ShareFetchRequest", 2, whole)
    assert kafkascope.to_json("ApiVersionsRequest", 3, {}) == {"clientSoftwareName": "", "clientSoftwareVersion": ""}


@pytest.mark.parametrize(
    ("name", "version", "value"),
    [
        ("HeartbeatResponse", 1, {"throttleTimeMs": 0, "errorCode": 0, "zzz": 1}),
        ("HeartbeatResponse", 1, {"throttleTimeMs": "x", "errorCode": b"y", "zzz": 1}),
        ("HeartbeatResponse", 1, {"throttleTimeMs": "x", "errorCode": 0}),
        ("HeartbeatResponse", 1, {"throttleTimeMs": 0, "errorCode": 70_000}),
        ("HeartbeatResponse", 1, {"throttleTimeMs": True, "errorCode": 0}),
        ("HeartbeatResponse", 1, {"throttleTimeMs": None, "errorCode": 0}),
        ("HeartbeatResponse", 1, {"throttleTimeMs": 0, "errorCode": 0, UNKNOWN_TAGS: [{"tag": 1, "data": b""}]}),
        ("HeartbeatResponse", 4, {"throttleTimeMs": 0, "errorCode": 0, UNKNOWN_TAGS: [{"tag": 1, "data": "x"}]}),
        ("HeartbeatResponse", 4, {"throttleTimeMs": 0, "errorCode": 0, UNKNOWN_TAGS: {"tag": 1}}),
        ("SaslHandshakeResponse", 1, {"errorCode": 0, "mechanisms": "PLAIN"}),
        ("SaslHandshakeResponse", 1, {"errorCode": 0, "mechanisms": [None]}),
        ("SaslAuthenticateRequest", 2, {"authBytes": "x"}),
        ("DescribeQuorumRequest", 1, {"topics": [{"topicName": "t", "partitions": [{"partitionIndex": "0"}]}]}),
        ("DescribeQuorumRequest", 1, {"topics": ["t"]}),
        ("DescribeTopicPartitionsRequest", 0, {"cursor": "c"}),
        ("ConsumerGroupDescribeRequest", 0, {"groupIds": ["g"], "includeAuthorizedOperations": 1}),
        ("FetchRequest", 13, {"topics": [{"topicId": "x"}]}),
        ("ApiVersionsRequest", 3, []),
    ],
    ids=str,
)
def test_what_encode_refuses_is_refused_with_the_same_words(name: str, version: int, value: Any) -> None:
    with pytest.raises(EncodeError) as encoding:
        kafkascope.encode(name, version, value)
    with pytest.raises(EncodeError) as writing:
        kafkascope.to_json(name, version, value)
    assert str(writing.value) == str(encoding.value)


def test_values_that_encode_takes_for_another_are_written_as_that() -> None:
    value: dict[str, Any] = {"throttleTimeMs": 0, "errorCode": Code.REBALANCE}
    assert kafkascope.to_json("HeartbeatResponse", 1, value) == {"throttleTimeMs": 0, "errorCode": 27}
    value = {"errorCode": 0, "mechanisms": ("PLAIN",)}
    assert kafkascope.to_json("SaslHandshakeResponse", 1, value) == {"errorCode": 0, "mechanisms": ["PLAIN"]}
    assert kafkascope.to_json("SaslAuthenticateRequest", 2, {"authBytes": bytearray(b"abc")}) == {"authBytes": "YWJj"}


def test_a_decoded_value_that_encode_would_refuse_is_written_all_the_same() -> None:
    # 20,000 bytes that are no UTF-8 become 60,000 of replacement characters, more than a string may have
    data = (20_000).to_bytes(2, "big") + b"\xff" * 20_000
    decoded = kafkascope.decode("SaslHandshakeRequest", 1, data)
    with pytest.raises(EncodeError):
        kafkascope.encode("SaslHandshakeRequest", 1, decoded.value)
    assert kafkascope.to_json("SaslHandshakeRequest", 1, decoded.value) == {"mechanism": "\ufffd" * 20_000}
