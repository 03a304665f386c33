"""Headers and whole frames: which header a message has, and what is read where the wire says something unforeseen."""

from random import Random
from typing import Any

import pytest

import kafkascope
from kafkascope.codec.frame import header_version
from kafkascope.codec.message import decode_part
from kafkascope.errors import DecodeError, EncodeError, UsageError
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.layouts.layout import choose_block
from tests.support.hexes import hexes


# protocol note 1
def test_request_header_v2_keeps_client_id_classic() -> None:
    data = hexes("""
        004e 0002            # ShareFetch v2
        00000007             # correlation id 7
        0003 617070          # client_id "app": int16 length, not compact
        00                   # no tags
    """)
    header = {"requestApiKey": 78, "requestApiVersion": 2, "correlationId": 7, "clientId": "app"}
    decoded = kafkascope.decode("RequestHeader", 2, data)
    assert decoded.value == header
    assert decoded.exact
    assert kafkascope.encode("RequestHeader", 2, header) == data


@pytest.mark.parametrize(("client_id", "written"), [(None, "ffff"), ("", "0000")])
def test_tag_section_follows_a_null_or_empty_client_id(client_id: str | None, written: str) -> None:
    data = hexes(f"""
        004e 0002            # ShareFetch v2
        00000007             # correlation id 7
        {written}            # client_id null or empty
        01 05 01 ff          # one tag: 5, of 1 byte
    """)
    decoded = kafkascope.decode("RequestHeader", 2, data)
    assert decoded.value["clientId"] == client_id
    assert [(tag.tag, tag.data) for tag in decoded.unknown_tags] == [(5, b"\xff")]
    assert decoded.exact
    assert kafkascope.encode("RequestHeader", 2, decoded.value) == data
    with pytest.raises(DecodeError, match="tag count is cut off"):
        kafkascope.decode("RequestHeader", 2, data[:-4])


def test_request_header_v1_has_a_client_id_and_no_tags() -> None:
    data = hexes("""
        0003 0001            # Metadata v1
        00000007             # correlation id 7
        ffff                 # client_id null
    """)
    assert kafkascope.decode("RequestHeader", 1, data).value["clientId"] is None
    assert kafkascope.decode("RequestHeader", 1, data).exact


# protocol note 2
@pytest.mark.parametrize("version", range(6))
def test_api_versions_response_header_is_always_v0(version: int) -> None:
    assert header_version("ApiVersionsResponse", version) == 0
    assert header_version("ApiVersionsRequest", version) == (2 if version >= 3 else 1)
    frame = kafkascope.encode_frame("ApiVersionsResponse", version, {}, {"correlationId": 7})
    assert frame[4:10] == hexes("00000007 0000")  # correlation id, then at once the error code
    decoded = kafkascope.decode_frame(frame, response_to=("ApiVersions", version))
    assert decoded.body is not None
    assert decoded.exact
    assert (decoded.correlation_id, decoded.version) == (7, version)


def test_a_flexible_response_has_header_v1_with_tags() -> None:
    frame = hexes("""
        0000000c             # 12 bytes follow
        00000007             # correlation id 7
        00                   # no tags of the header
        00000000 001b 00     # throttle_time_ms 0, error_code 27, no tags
    """)
    value = {"throttleTimeMs": 0, "errorCode": 27}
    assert frame == kafkascope.encode_frame("HeartbeatResponse", 4, value, {"correlationId": 7})
    decoded = kafkascope.decode_frame(frame, response_to=("Heartbeat", 4))
    assert decoded.correlation_id == 7
    assert decoded.header.value == {"correlationId": 7}
    assert decoded.body is not None and decoded.body.value == value
    assert decoded.exact


# protocol note 3
def test_api_versions_asked_too_new_is_answered_in_version_0() -> None:
    frame = hexes("""
        00000010             # 16 bytes follow
        00000001             # correlation id 1
        0023                 # error_code 35, UNSUPPORTED_VERSION
        00000001             # api_keys: 1, an int32 count
          0012 0000 0004     #   ApiVersions 0-4
    """)
    for version in (3, 4, 5, 9):
        decoded = kafkascope.decode_frame(frame, response_to=("ApiVersions", version))
        assert decoded.version == 0
        assert decoded.body is not None
        assert decoded.body.value == {"errorCode": 35, "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 4}]}
        assert decoded.exact


def test_only_error_35_means_version_0() -> None:
    body = {"errorCode": 36, "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 4}]}
    frame = kafkascope.encode_frame("ApiVersionsResponse", 3, body)
    decoded = kafkascope.decode_frame(frame, response_to=("ApiVersions", 3))
    assert decoded.version == 3
    assert decoded.body is not None and decoded.body.value["errorCode"] == 36
    # The same bytes as version 0 would be no version 3.
    other = kafkascope.encode_frame("ApiVersionsResponse", 0, body)
    with pytest.raises(DecodeError):
        kafkascope.decode_frame(other, response_to=("ApiVersions", 3))


def test_error_35_in_the_version_that_was_asked_for_is_read_as_that() -> None:
    body = {"errorCode": 35, "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 4}], "throttleTimeMs": 0}
    frame = kafkascope.encode_frame("ApiVersionsResponse", 3, body)
    decoded = kafkascope.decode_frame(frame, response_to=("ApiVersions", 3))
    assert decoded.version == 3
    assert decoded.exact
    assert decoded.body is not None and decoded.body.value["apiKeys"] == body["apiKeys"]


@pytest.mark.parametrize("version", [3, 4, 9])
def test_a_one_byte_count_behind_error_35_is_no_surprise(version: int) -> None:
    """librdkafka's mock: a count of one byte that is not one more, and no tags."""
    frame = hexes("""
        00000001             # correlation id 1
        0023                 # error_code 35
        01                   # one API key
          0012 0000 0003     #   ApiVersions 0-3
        00000000             # throttle_time_ms
    """)
    decoded = kafkascope.decode_frame(frame, response_to=("ApiVersions", version))
    assert decoded.correlation_id == 1
    assert not decoded.exact
    assert decoded.reasons


# protocol note 4
def test_controlled_shutdown_v0_has_no_client_id() -> None:
    frame = hexes("""
        0000000c             # 12 bytes follow
        0007 0000            # ControlledShutdown v0
        00000007             # correlation id 7
        00000003             # broker_id 3: no client_id before it
    """)
    assert header_version("ControlledShutdownRequest", 0) == 0
    assert header_version("ControlledShutdownRequest", 1) == 1
    decoded = kafkascope.decode_frame(frame)
    assert decoded.body is not None and decoded.body.value == {"brokerId": 3}
    assert "clientId" not in decoded.header.value
    assert decoded.exact
    assert kafkascope.encode_frame("ControlledShutdownRequest", 0, {"brokerId": 3}, {"correlationId": 7}) == frame


@pytest.mark.parametrize("api", ["SaslHandshake", "OffsetDelete"])
def test_sasl_handshake_and_offset_delete_are_never_flexible(api: str) -> None:
    for kind, header in (("Request", 1), ("Response", 0)):
        for version in message(f"{api}{kind}").all_versions():
            assert header_version(f"{api}{kind}", version) == header


def test_every_header_version_follows_from_flexibility_but_for_two() -> None:
    """Three exceptions of Kafka's own generator: ApiVersions answers, ControlledShutdown v0; nothing else."""
    for api in apis().values():
        for version in message(f"{api}Request").all_versions():
            flexible = version in choose_block(message(f"{api}Request"), version, None).flexible
            expected = 0 if (api, version) == ("ControlledShutdown", 0) else 2 if flexible else 1
            assert header_version(f"{api}Request", version) == expected, (api, version)
            answered = version in choose_block(message(f"{api}Response"), version, None).flexible
            assert flexible == answered, (api, version)
            expected = 1 if answered and api != "ApiVersions" else 0
            assert header_version(f"{api}Response", version) == expected, (api, version)


def test_only_requests_and_responses_have_headers() -> None:
    with pytest.raises(UsageError, match="TopicRecord has no header"):
        header_version("TopicRecord", 0)


# protocol note 9
def test_a_response_is_read_by_the_version_of_its_request() -> None:
    value = {"throttleTimeMs": 9, "errorCode": 27}
    v1 = kafkascope.encode_frame("HeartbeatResponse", 1, value, {"correlationId": 3})
    v4 = kafkascope.encode_frame("HeartbeatResponse", 4, value, {"correlationId": 3})
    assert v1 != v4
    for version, frame in ((1, v1), (4, v4)):
        for api in ("Heartbeat", "heartbeat", 12):
            decoded = kafkascope.decode_frame(frame, response_to=(api, version))
            assert (decoded.name, decoded.api, decoded.kind) == ("HeartbeatResponse", "Heartbeat", "response")
            assert decoded.body is not None and decoded.body.value == value


@pytest.mark.parametrize("api", sorted(apis().values()))
def test_frames_of_every_api_come_back_with_and_without_their_length(api: str) -> None:
    for version in message(f"{api}Request").all_versions():
        header: dict[str, Any] = {"correlationId": 1_000_007}
        for length in (True, False):
            request = kafkascope.encode_frame(f"{api}Request", version, {}, header, length=length)
            decoded = kafkascope.decode_frame(request)
            assert (decoded.name, decoded.version, decoded.correlation_id) == (f"{api}Request", version, 1_000_007)
            assert decoded.exact and decoded.body is not None
            assert decoded.length == (len(request) - 4 if length else None)
            response = kafkascope.encode_frame(f"{api}Response", version, {}, header, length=length)
            answer = kafkascope.decode_frame(response, response_to=(api, version))
            assert (answer.name, answer.version, answer.correlation_id) == (f"{api}Response", version, 1_000_007)
            assert answer.exact and answer.body is not None


def test_a_correlation_id_that_could_be_a_length_is_not_taken_for_one() -> None:
    frame = hexes("""
        00000006             # correlation id 6; 6 bytes follow it
        00000000             # throttle_time_ms 0
        001b                 # error_code 27
    """)
    decoded = kafkascope.decode_frame(frame, response_to=("Heartbeat", 1))
    assert decoded.correlation_id == 6
    assert decoded.body is not None and decoded.body.value == {"throttleTimeMs": 0, "errorCode": 27}


def test_spans_of_a_frame_lie_behind_each_other() -> None:
    frame = kafkascope.encode_frame("HeartbeatRequest", 4, {"groupId": "g"}, {"correlationId": 5, "clientId": "app"})
    decoded = kafkascope.decode_frame(frame, spans=True)
    assert decoded.body is not None
    spans = (*decoded.header.spans, *decoded.body.spans)
    assert (decoded.header_at, decoded.body_at) == (
        4,
        spans[0].start + sum(s.end - s.start for s in decoded.header.spans),
    )
    ends = [4, *(span.end for span in spans)]
    assert [span.start for span in spans] == ends[:-1]
    assert ends[-1] == len(frame)


def test_unknown_apis_and_versions_are_data() -> None:
    header = hexes("""
        03e7 0001            # API key 999 v1
        00000007             # correlation id 7
        0003 617070          # client_id "app"
        01020304             # whatever it says
    """)
    decoded = kafkascope.decode_frame(header)
    assert (decoded.name, decoded.api, decoded.api_key, decoded.version) == (None, None, 999, 1)
    assert decoded.body is None
    assert decoded.header.value["clientId"] == "app"
    assert decoded.reasons == ("API key 999 isn't in the catalog; 4 bytes left unread (offset 13)",)
    newer = hexes("""
        004e 0063            # ShareFetch v99
        00000007             # correlation id 7
        ffff                 # client_id null
        00                   # no tags: as flexible as the newest version
        0102                 # whatever it says
    """)
    decoded = kafkascope.decode_frame(newer)
    assert (decoded.name, decoded.version, decoded.body) == ("ShareFetchRequest", 99, None)
    assert decoded.reasons == ("ShareFetchRequest v99 isn't in the catalog; 2 bytes left unread (offset 11)",)
    answer = kafkascope.decode_frame(hexes("00000007 0000"), response_to=(999, 1))
    assert (answer.name, answer.correlation_id, answer.body) == (None, 7, None)
    with pytest.raises(UsageError, match="unknown API Heartbeet; did you mean Heartbeat"):
        kafkascope.decode_frame(hexes("00000007 0000"), response_to=("Heartbeet", 1))


@pytest.mark.parametrize("size", range(10))
def test_a_request_too_short_for_its_header_is_a_decode_error(size: int) -> None:
    with pytest.raises(DecodeError):
        kafkascope.decode_frame(hexes("000c 0000 00000001 ffff")[:size])


@pytest.mark.parametrize("size", range(4))
def test_a_response_too_short_for_its_header_is_a_decode_error(size: int) -> None:
    with pytest.raises(DecodeError):
        kafkascope.decode_frame(bytes(size), response_to=("Heartbeat", 0))


# protocol notes 22, 42
def test_client_id_of_length_minus_two_is_read_as_null() -> None:
    decoded = kafkascope.decode_frame(hexes("000c 0000 00000001 fffe 0000 00000000 0000"))
    assert decoded.header.value["clientId"] is None
    assert not decoded.exact


def test_a_negative_or_false_length_is_not_taken_for_a_length() -> None:
    """FFFFFFFF in front: a key of -1, not a frame of any size."""
    decoded = kafkascope.decode_frame(hexes("ffff ffff 00000001 ffff"))
    assert (decoded.api_key, decoded.version, decoded.length, decoded.body) == (-1, -1, None, None)


def test_header_fields_that_are_no_header_fields_are_refused() -> None:
    with pytest.raises(EncodeError, match="RequestHeader v1, correlation_id: no such field"):
        kafkascope.encode_frame("HeartbeatRequest", 0, {}, {"correlation_id": 7})
    with pytest.raises(EncodeError, match="ResponseHeader v0, clientId: no such field"):
        kafkascope.encode_frame("HeartbeatResponse", 0, {}, {"clientId": "app"})


@pytest.mark.parametrize("wrong", [{"requestApiKey": 5}, {"requestApiVersion": 2}])
def test_a_header_that_contradicts_the_message_is_refused(wrong: dict[str, int]) -> None:
    right = {"requestApiKey": 18, "requestApiVersion": 3, "correlationId": 1}
    frame = kafkascope.encode_frame("ApiVersionsRequest", 3, {}, right)
    assert frame == kafkascope.encode_frame("ApiVersionsRequest", 3, {}, {"correlationId": 1})
    with pytest.raises(EncodeError, match=rf"RequestHeader v2, {next(iter(wrong))}: ApiVersionsRequest v3 has"):
        kafkascope.encode_frame("ApiVersionsRequest", 3, {}, right | wrong)


@pytest.mark.parametrize("data", [5, "00", None])
def test_a_frame_that_is_no_bytes_is_wrong_use(data: Any) -> None:
    with pytest.raises(UsageError, match="expected bytes"):
        kafkascope.decode_frame(data)


def test_a_version_that_is_no_number_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="a version must be a number"):
        kafkascope.decode_frame(bytes(8), response_to=("Heartbeat", "1"))  # type: ignore[arg-type]


def test_a_guess_where_a_header_ends_changes_nothing() -> None:
    """Right or wrong: what is read, where it ends, and what is said of bytes that are no header."""
    random = Random(20)
    right = 0
    for _ in range(20_000):
        name, version = random.choice([("RequestHeader", 0), ("RequestHeader", 1), ("RequestHeader", 2),
                                       ("ResponseHeader", 0), ("ResponseHeader", 1)])  # fmt: skip
        data = bytearray(random.randbytes(3))
        position = len(data)
        value: dict[str, Any] = {"correlationId": random.randint(-5, 5)}
        if name == "RequestHeader":
            value |= {"requestApiKey": 3, "requestApiVersion": 9}
            value |= {"clientId": random.choice([None, "", "app", "ä" * 9])} if version else {}
        data += kafkascope.encode(name, version, value)
        end = len(data)
        data += random.randbytes(random.randrange(6))
        if random.random() < 0.3:
            data[random.randrange(position, len(data))] = random.randrange(256)
        if random.random() < 0.1:
            del data[random.randrange(position, len(data)) :]
        guess = random.choice([end, end, end, end - 1, end + 1, position])
        parts: list[object] = []
        for likely_end in (guess, -1):
            try:
                parts.append(decode_part(name, version, bytes(data), position, likely_end=likely_end))
            except DecodeError as error:
                parts.append(str(error))
        assert parts[0] == parts[1], (name, version, data.hex(), guess)
        right += isinstance(parts[0], tuple) and parts[0][1] == guess
    assert right > 8_000
