"""One request is enough for Kafka, and nothing of other protocols is one: whole, from the middle, in part, or alone."""

from random import Random

import pytest

from kafkascope.capture.base.flow import (
    PieceKind,
)
from tests.support.flows import Message
from tests.support.framing import Stream
from tests.support.other_protocols import PROTOCOLS, echoed_numbers
from tests.support.traffic import REQUEST, RESPONSE

STREAMS = 10  # of each protocol


def whole(stream: Stream, messages: list[Message], _random: Random) -> None:
    stream.say(*messages)


def alone(stream: Stream, messages: list[Message], _random: Random) -> None:
    """The first request, and a reset."""
    stream.say(next((message for message in messages if message[0] == REQUEST), messages[0]))
    stream.feed((PieceKind.RESET, REQUEST, b""), (PieceKind.RESET, RESPONSE, b""))


def cut(stream: Stream, messages: list[Message], random: Random) -> None:
    """Packets recorded in part."""
    snap = random.choice((14, 30, 62))
    for way, data in messages:
        stream.feed(
            (PieceKind.BYTES, way, data[:snap]), *([(PieceKind.GAP, way, len(data) - snap)] if len(data) > snap else [])
        )


# Packets of echoed numbers, cut, have Kafka's headers and nothing else.
CASES = [
    (number, manner)
    for number, made in enumerate(PROTOCOLS)
    for manner in (whole, alone, cut)
    if (made, manner) != (echoed_numbers, cut)
]


@pytest.mark.parametrize(
    ("number", "manner"), CASES, ids=[f"{PROTOCOLS[number].__name__}-{manner.__name__}" for number, manner in CASES]
)
@pytest.mark.parametrize("opener", [REQUEST, None])
def test_other_protocols_give_nothing(number: int, manner: object, opener: int | None) -> None:
    for turn in range(STREAMS):
        seed = 1_000 * number + turn
        random = Random(seed)
        stream = Stream(opener=opener)
        manner(stream, PROTOCOLS[number](random), random)  # type: ignore[operator]
        assert stream.finish() == [], f"seed {seed}"
        assert stream.connection.protocol != "kafka", f"seed {seed}"
