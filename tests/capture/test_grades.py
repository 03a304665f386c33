"""What the quick ways of recognising say, the careful ones say as well: of true frames, of spoilt ones and of noise."""

from collections import Counter
from collections.abc import Iterator
from random import Random
from unittest.mock import patch

import numpy as np
import pytest

from kafkascope.capture.frames.detect import grade as recognise
from kafkascope.capture.frames.detect.grade import Grade, Graded, grade_request, grade_response, other_protocol
from kafkascope.capture.frames.detect.start import is_tls
from kafkascope.schema.catalog import apis, message
from tests.captures import NAMES
from tests.support.recorded import recorded_frames
from tests.support.traffic import request, response

# A frame, and what it answers.
Given = tuple[bytes, tuple[int, int] | None]

_quick = recognise._quick


def made() -> Iterator[Given]:
    """Every message in every version."""
    for key, api in apis().items():
        for version in message(f"{api}Request").all_versions():
            if (api, version) != ("ControlledShutdown", 0):
                yield request(api, version, 5), None
                yield request(api, version, 5, None), None
            yield response(api, version, 5), (key, version)


def recorded(name: str) -> Iterator[Given]:
    """Each different frame once."""
    seen: set[Given] = set()
    for one in recorded_frames(name):
        given = one.data, one.response_to
        if given not in seen:
            seen.add(given)
            yield given


def spoilt(data: bytes, random: Random) -> bytes:
    """With a few other bytes, or another length; mostly one that the prefix tells."""
    body = bytearray(data)
    for _ in range(random.randint(0, 3)):
        body[random.randrange(4, len(body))] = random.choice((0, 1, 2, 35, 255, random.randrange(256)))
    if random.random() < 0.3:
        body = body[: random.randint(4, len(body))]
    elif random.random() < 0.2:
        body += random.randbytes(random.randint(1, 4))
    if random.random() < 0.9:
        body[:4] = (len(body) - 4).to_bytes(4, "big")
    return bytes(body)


def graded(data: bytes, asked: tuple[int, int] | None) -> Graded:
    """But for which decoder it took."""
    if asked is None:
        return grade_request(data, 0)._replace(careful=False)
    asked_by_id = {int.from_bytes(data[4:8], "big", signed=True): asked}
    return grade_response(data, 0, asked_by_id)._replace(careful=False)


def carefully(data: bytes, asked: tuple[int, int] | None) -> Graded:
    """By the careful decoder alone."""
    with (
        patch.object(recognise, "_is_plain", lambda *_: False),
        patch.object(recognise, "_quick", lambda *given: _quick(*given)._replace(least=0)),
    ):
        return graded(data, asked)


def agree(given: list[Given], random: Random, times: int) -> Counter[Grade]:
    found: Counter[Grade] = Counter()
    for data, asked in given:
        for number in range(times + 1):
            one = spoilt(data, random) if number else data
            grade = graded(one, asked)
            assert grade == carefully(one, asked), (one.hex(), asked)
            found[grade.grade] += 1
    return found


def test_quick_grades_of_every_message_are_careful_ones() -> None:
    found = agree(list(made()), Random(11), 8)
    assert min(found[grade] for grade in Grade) > 50


@pytest.mark.parametrize("name", NAMES)
def test_quick_grades_of_recorded_frames_are_careful_ones(name: str) -> None:
    given = list(recorded(name))
    assert agree(given, Random(12), 0) == {Grade.STRONG: len(given)}
    agree(given, Random(13), 2)


def test_quick_grades_of_noise_are_careful_ones() -> None:
    """Zeros and small numbers, in which headers are found most easily."""
    random = Random(14)
    for _ in range(20_000):
        content = bytes(random.choice((0, 0, 0, 1, 2, 3, 18, 255)) for _ in range(random.randint(0, 40)))
        data = len(content).to_bytes(4, "big") + content
        asked = random.choice((None, (random.randrange(92), random.randrange(14)), (18, random.randrange(5))))
        assert graded(data, asked) == carefully(data, asked), (data.hex(), asked)


def test_the_kernel_knows_tls_as_others_do() -> None:
    random = Random(15)
    found: Counter[bool] = Counter()
    for _ in range(20_000):
        data = bytearray(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        for _ in range(random.randint(0, 2)):
            data[random.randrange(6)] = random.choice((0, 1, 2, 3, 4, 5, 21, 22, 23, 71, 72, 73, 255))
        del data[random.choice((11, 11, 7, 6, 5, 3, 1)) :]
        held = np.frombuffer(bytearray(data), np.uint8)
        said = bool(is_tls(held, 0, len(data)))
        assert said == (other_protocol(data, True) == "tls"), data.hex()
        found[said] += 1
    assert min(found[True], found[False]) > 1_000
