"""Frames of every message and version with edited lengths, counts, varints and tags: decoded to columns between guard
pages, and read out of a capture of them. A unit is many frames of one message."""

import json
from collections import Counter
from functools import lru_cache
from random import Random

from kafkascope.codec.frame import encode_frame
from kafkascope.codec.message import decode, encode
from kafkascope.codec.result import Span
from kafkascope.columnar.decode import ERROR, decode_columns
from kafkascope.schema.catalog import message
from kafkascope.schema.layouts.layout import layout
from tests.hostile.guard import guarded_frames
from tests.hostile.reading import read_recording
from tests.support.mutations import mutation
from tests.support.packet_build import Talk, pcap
from tests.support.pairs import Place, every_place
from tests.support.values import random_value
from tests.support.variety import lengthened

UNIT = 25
_VALUES, _LARGEST = 6, 1_500


def make(random: Random) -> bytes:
    place = random.choice(_places())
    bases = _bases(place)
    return packed(place, [mutation(*random.choice(bases), random)[1] for _ in range(UNIT)])


def packed(place: Place, frames: list[bytes]) -> bytes:
    return json.dumps([*place, list(map(len, frames))]).encode() + b"\n" + b"".join(frames)


def unpacked(unit: bytes) -> tuple[Place, list[bytes]]:
    head, _, rest = unit.partition(b"\n")
    name, version, release, lengths = json.loads(head)
    frames = []
    for length in lengths:
        frames.append(rest[:length])
        rest = rest[length:]
    return (name, version, release), frames


def run(unit: bytes) -> Counter[str]:
    place, frames = unpacked(unit)
    outcomes = in_columns(place, frames)
    if message(place[0]).kind in ("request", "response") and place[2] is None:
        read_recording(recording(place, frames))
    return outcomes


def in_columns(place: Place, frames: list[bytes], *, contents: bool = False) -> Counter[str]:
    table = decode_columns(place[0], place[1], guarded_frames(frames), place[2], contents=contents)
    table.validate(full=True)
    assert len(table) == len(frames)
    refused = len(frames) - table.column(ERROR).null_count
    return Counter({"refused": refused, "decoded": len(frames) - refused})


def recording(place: Place, bodies: list[bytes]) -> bytes:
    """One connection with all of them, each behind a header that is right; a request before each where they are
    responses, and a response to some where they are requests."""
    name, version, _ = place
    api, is_response = name.removesuffix("Response").removesuffix("Request"), name.endswith("Response")
    request, response = _example(f"{api}Request", version), _example(f"{api}Response", version)
    talk = Talk(segment_bytes=60_000).open()
    sent, received = bytearray(), bytearray()
    for number, body in enumerate(bodies):
        sent += _frame(request[0], request[1] if is_response else body, number, 4)
        if is_response or number % 3:
            received += _frame(response[0], body if is_response else response[1], number, 0)
    return pcap(talk.say(0, bytes(sent)).say(1, bytes(received)).close().packets)


def _frame(header: bytes, body: bytes, number: int, at: int) -> bytes:
    content = header[:at] + number.to_bytes(4, "big") + header[at + 4 :] + body
    return len(content).to_bytes(4, "big") + content


@lru_cache(maxsize=4096)
def _example(name: str, version: int) -> tuple[bytes, bytes]:
    """Header and body."""
    version = version if version in message(name).all_versions() else max(message(name).all_versions())
    value = random_value(layout(name, version), 0)
    body = encode(name, version, value)
    whole = encode_frame(name, version, value, {"correlationId": 0}, length=False)
    return whole[: len(whole) - len(body)], body


@lru_cache(maxsize=1)
def _places() -> list[Place]:
    return every_place()


@lru_cache(maxsize=2048)
def _bases(place: Place) -> list[tuple[bytes, tuple[Span, ...]]]:
    name, version, release = place
    known = layout(*place)
    values = [random_value(known, case) for case in range(_VALUES)]
    values += [lengthened(known, values, Random(str(place)), size) for size in ((3, 9), (30, 130))]
    encoded = sorted({encode(name, version, value, release) for value in values}, key=lambda data: (len(data), data))
    kept = [data for data in encoded if len(data) <= _LARGEST] or encoded[:1]
    return [(data, decode(name, version, data, release, spans=True).spans) for data in kept]
