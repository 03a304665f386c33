"""What was read is given back at once: an error that a call holds would hold the bytes of a whole batch, until the
collector comes."""

import gc
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO

import pytest

from kafkascope.capture.exchanges.bodies import read_frame
from kafkascope.capture.reader import Reading
from kafkascope.errors import DecodeError
from tests.captures import NAMES, capture

METADATA = 3


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def with_losses(data: bytes) -> bytes:
    """Every ninth packet is missing, so that the next frame of a stream must be searched for."""
    kept, at, number = [data[:24]], 24, 0
    while at < len(data):
        end = at + 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        if number % 9:
            kept.append(data[at:end])
        at, number = end, number + 1
    return b"".join(kept)


def test_a_response_that_cannot_be_read_leaves_nothing() -> None:
    gc.collect()
    for _ in range(3):
        with suppress(DecodeError):
            read_frame(bytes(3) + b"\x05" + b"\xff" * 5, (METADATA, 12))
    assert gc.collect() == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_with_losses_leaves_nothing(name: str) -> None:
    data = with_losses(capture(name))
    for _ in range(2):
        # What is loaded when it is first wanted may leave something.
        gc.collect()
        reading = Reading(BytesIO(data))
        for _ in reading.batches():
            pass
        lost = reading.account.lost_places
        del reading
        unreachable = gc.collect()
    assert lost and unreachable == 0
