"""`decode --as`: the reading that the bytes prove goes first, and an error is the one of that reading."""

import json

import pytest

from kafkascope.codec.frame import decode_frame, encode_frame
from kafkascope.codec.identify.identify import identify
from kafkascope.codec.message import encode
from kafkascope.errors import DecodeError, InputError
from kafkascope.schema.layouts.examples import example
from tests.support.cli import Cli, is_one_line_error
from tests.support.hexes import hexes

REQUEST, RESPONSE = "DescribeQuorumRequest:1", "DescribeQuorumResponse:1"


@pytest.fixture
def frame() -> bytes:
    return encode_frame("DescribeQuorumRequest", 1, example("DescribeQuorumRequest", 1), {"correlationId": 7})


@pytest.fixture
def answer() -> bytes:
    return encode_frame("DescribeQuorumResponse", 1, example("DescribeQuorumResponse", 1), {"correlationId": 7})


@pytest.mark.parametrize("start", [0, 4, 9], ids=["frame", "headed", "body"])
def test_a_damaged_response_is_told_where_it_is_damaged(answer: bytes, start: int) -> None:
    damaged = bytearray(answer)
    damaged[54] = 0x7F  # the count of the first partition's voters
    with pytest.raises(DecodeError, match=rf"partitions\[0\]\.currentVoters: count 126 .*\(offset {55 - start}\)"):
        identify(bytes(damaged[start:]), RESPONSE, None)


def test_the_error_of_a_frame_is_that_of_the_reading_its_length_proves(answer: bytes) -> None:
    damaged = bytearray(answer)
    damaged[54] = 0x7F
    with pytest.raises(DecodeError, match=r"currentVoters: count 126 .*\(offset 55\)"):
        decode_frame(damaged, response_to=("DescribeQuorum", 1))


@pytest.mark.parametrize("start", [0, 4], ids=["frame", "headed"])
def test_a_request_is_no_response(cli: Cli, frame: bytes, start: int) -> None:
    result = cli("decode", "--as", RESPONSE, frame[start:].hex())
    assert (result.code, result.out) == (3, "")
    assert is_one_line_error(result.err)
    assert "the header names DescribeQuorumRequest v1" in result.err


@pytest.mark.parametrize("start", [0, 4], ids=["frame", "headed"])
def test_a_request_of_another_version_says_so(frame: bytes, start: int) -> None:
    with pytest.raises(InputError, match="not DescribeQuorumRequest v2: the header names DescribeQuorumRequest v1"):
        identify(frame[start:], "DescribeQuorumRequest:2", None)


@pytest.mark.parametrize("name", [REQUEST, "DescribeQuorumRequest:2"])
def test_a_request_that_is_cut_off_or_not_alone_says_so(frame: bytes, name: str) -> None:
    with pytest.raises(InputError, match=r"the frame is cut off: its length is \d+ bytes, 36 are present"):
        identify(frame[:40], name, None)
    for more in (frame, b"\xff"):
        with pytest.raises(InputError, match="more than one frame"):
            identify(frame + more, name, None)


def test_a_response_that_is_cut_off_or_not_alone_says_so(answer: bytes) -> None:
    for size in (60, len(answer) - 1):
        with pytest.raises(InputError, match=rf"the frame is cut off: its length is \d+ bytes, {size - 4} are present"):
            identify(answer[:size], RESPONSE, None)
    for more in (answer, b"\xff"):
        with pytest.raises(InputError, match="more than one frame"):
            identify(answer + more, RESPONSE, None)


@pytest.mark.parametrize("throttle", [2, 3])
def test_a_body_whose_first_number_is_the_size_of_the_rest_is_a_body(throttle: int) -> None:
    identified = identify(encode("HeartbeatResponse", 1, {"throttleTimeMs": throttle}), "HeartbeatResponse:1", None)
    assert identified.body is not None and identified.exact
    assert identified.body.value == {"throttleTimeMs": throttle, "errorCode": 0}


def test_a_body_that_begins_as_tls_does_is_read() -> None:
    names = ["ab"] + [f"group-{number}" for number in range(20)]
    body = encode("DeleteGroupsRequest", 2, {"groupsNames": names})
    assert body[:2] == b"\x16\x03"
    identified = identify(body, "DeleteGroupsRequest:2", None)
    assert identified.body is not None and identified.body.value["groupsNames"] == names
    with pytest.raises(InputError, match="not a known request"):
        identify(body, None, None)


@pytest.mark.parametrize("name", [None, RESPONSE])
def test_what_is_tls_or_http_is_named_where_it_does_not_read(name: str | None) -> None:
    hello = hexes("""
        16 0301             # handshake, TLS 1.0 as every client hello says
        00c8                # 200 bytes
        01 0000c4 0303      # client hello
    """) + bytes(194)  # fmt: skip
    with pytest.raises(InputError, match="this is TLS"):
        identify(hello, name, None)
    with pytest.raises(InputError, match="this is HTTP"):
        identify(b"HTTP/1.1 400 Bad Request\r\n\r\n", name, None)


def test_a_name_that_is_no_message_is_wrong_use(cli: Cli) -> None:
    result = cli("decode", "--as", "nope:1", "00")
    assert (result.code, result.out) == (2, "")
    assert "unknown message or API nope" in result.err


def test_an_inexact_response_with_its_header_keeps_its_header(cli: Cli, answer: bytes) -> None:
    document = json.loads(cli("decode", "--as", RESPONSE, (answer + b"\xff")[4:].hex(), "--json").out)
    assert document["header"] == {"correlationId": 7}
    assert document["reasons"] == [f"1 byte after the message (offset {len(answer) - 4})"]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_fewer_bytes_than_a_header_has_are_not_fewer_than_none(size: int) -> None:
    with pytest.raises(DecodeError, match=r"^ShareFetchResponse v2, throttleTimeMs: int32 needs 4 bytes, \d left"):
        identify(bytes(size), "ShareFetchResponse:2", None)
