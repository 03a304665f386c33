"""Arguments of the wrong kind are said to be so."""

from typing import Any

import pytest

from kafkascope import decode
from kafkascope.errors import UsageError


@pytest.mark.parametrize(
    ("version", "data", "said"),
    [
        (0, 5, "a body is bytes; this is int"),
        (0, "00", "a body is bytes; this is str"),
        (0, None, "a body is bytes; this is NoneType"),
        ("3", b"", "a version is a number; this is str"),
        (None, b"", "a version is a number; this is NoneType"),
    ],
)
def test_bodies_are_bytes_and_versions_numbers(version: Any, data: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        decode("ApiVersionsRequest", version, data)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_will_do(kind: Any) -> None:
    assert decode("HeartbeatResponse", 0, kind(bytes(2))).value == {"errorCode": 0}
