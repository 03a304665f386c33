"""Arguments of the wrong kind are said to be so, in the words that the page of errors quotes."""

import re
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest

from kafkascope import decode, decode_frame, encode, encode_frame
from kafkascope.codec.text.byte_text import parse_text
from kafkascope.errors import KafkascopeError, UsageError


@pytest.mark.parametrize(
    ("version", "data", "reason"),
    [
        (0, 5, "a body must be bytes, not int"),
        (0, "00", "a body must be bytes, not str"),
        (0, None, "a body must be bytes, not NoneType"),
        ("3", b"", "a version must be a number, not str"),
        (None, b"", "a version must be a number, not NoneType"),
    ],
)
def test_bodies_are_bytes_and_versions_numbers(version: Any, data: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        decode("ApiVersionsRequest", version, data)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_will_do(kind: Any) -> None:
    assert decode("HeartbeatResponse", 0, kind(bytes(2))).value == {"errorCode": 0}


class Version(IntEnum):
    """As a number of numpy is: equal to an int, and none that JSON knows."""

    TWO = 2


def test_a_version_that_is_as_good_as_a_number_is_kept_as_one() -> None:
    body = encode("ShareAcknowledgeResponse", Version.TWO, {})
    decoded = decode("ShareAcknowledgeResponse", Version.TWO, body)
    assert (decoded.version, type(decoded.version)) == (2, int)
    frame = decode_frame(encode_frame("ShareAcknowledgeRequest", Version.TWO, {}))
    assert (frame.version, frame.exact) == (2, True)


@pytest.mark.parametrize("call", [decode, encode, encode_frame])
def test_a_release_and_a_name_are_text(call: Any) -> None:
    value: Any = b"" if call is decode else {}
    with pytest.raises(UsageError, match=r'a release must be text such as "4\.4", not float'):
        call("HeartbeatResponse", 0, value, release=3.9)
    with pytest.raises(UsageError, match="the name of a message must be text, not int"):
        call(12, 0, value)


def test_a_frame_says_what_it_wants() -> None:
    with pytest.raises(UsageError, match="a version must be a number, not str"):
        encode_frame("HeartbeatRequest", "0", {})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"a header must be a dict such as \{'correlationId': 7\}, not int"):
        encode_frame("HeartbeatRequest", 0, {}, 7)  # type: ignore[arg-type]
    response_to: Any
    for response_to in ("Heartbeat", ("Heartbeat",), 12, ("Heartbeat", 0, 1)):
        with pytest.raises(UsageError, match=r"response_to must be an API and a version, such as \('Heartbeat', 4\)"):
            decode_frame(bytes(6), response_to=response_to)


def test_the_page_of_errors_quotes_what_is_said() -> None:
    page = (Path(__file__).parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
    quoted = dict(re.findall(r"^\| `(\w+)` \|.* \| `(.*)` \|$", page, re.MULTILINE))
    calls: dict[str, Callable[[], object]] = {
        "UsageError": lambda: decode("ShareFetchRequest", 9, b""),
        "NotFoundError": lambda: decode("ShareFetchRequst", 0, b""),
        "InputError": lambda: parse_text("0" * 43),
        "DecodeError": lambda: decode("ApiVersionsRequest", 3, b"\x04a"),
        "EncodeError": lambda: encode("ApiVersionsRequest", 3, {"clientSoftwareName": 5}),
    }
    for name, call in calls.items():
        with pytest.raises(KafkascopeError) as raised:
            call()
        assert (type(raised.value).__name__, str(raised.value)) == (name, quoted[name])
