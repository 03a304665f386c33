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
Example = tuple[bytes, tuple[int, int] | None]

_quick = recognise._quick


def made() -> Iterator[Example]:
    """Every message in every version."""
    for key, api in apis().items():
        for version in message(f"{api}Request").all_versions():
            if (api, version) != ("ControlledShutdown", 0):
                yield request(api, version, 5), None
                yield request(api, version, 5, None), None
            yield response(api, version, 5), (key, version)


def recorded(name: str) -> Iterator[Example]:
    """Each different frame once."""
    seen: set[Example] = set()
    for frame in recorded_frames(name):
        frame_and_request = frame.data, frame.response_to
        if frame_and_request not in seen:
            seen.add(frame_and_request)
            yield frame_and_request


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


def graded(data: bytes, response_to: tuple[int, int] | None) -> Graded:
    """But for which decoder it took."""
    if response_to is None:
        return grade_request(data, 0)._replace(careful=False)
    asked_by_id = {int.from_bytes(data[4:8], "big", signed=True): response_to}
    return grade_response(data, 0, asked_by_id)._replace(careful=False)


def carefully(data: bytes, response_to: tuple[int, int] | None) -> Graded:
    """By the careful decoder alone."""
    with (
        patch.object(recognise, "_is_plain", lambda *_: False),
        patch.object(recognise, "_quick", lambda *arguments: _quick(*arguments)._replace(least=0)),
    ):
        return graded(data, response_to)


def agree(frames: list[Example], random: Random, times: int) -> Counter[Grade]:
    grades: Counter[Grade] = Counter()
    for data, response_to in frames:
        for number in range(times + 1):
            spoilt_data = spoilt(data, random) if number else data
            grade = graded(spoilt_data, response_to)
            assert grade == carefully(spoilt_data, response_to), (spoilt_data.hex(), response_to)
            grades[grade.grade] += 1
    return grades


def test_quick_grades_of_every_message_are_careful_ones() -> None:
    grades = agree(list(made()), Random(11), 8)
    assert min(grades[grade] for grade in Grade) > 50


@pytest.mark.parametrize("name", NAMES)
def test_quick_grades_of_recorded_frames_are_careful_ones(name: str) -> None:
    frames = list(recorded(name))
    assert agree(frames, Random(12), 0) == {Grade.STRONG: len(frames)}
    agree(frames, Random(13), 2)


def test_quick_grades_of_noise_are_careful_ones() -> None:
    """Zeros and small numbers, in which headers are found most easily."""
    random = Random(14)
    for _ in range(20_000):
        content = bytes(random.choice((0, 0, 0, 1, 2, 3, 18, 255)) for _ in range(random.randint(0, 40)))
        data = len(content).to_bytes(4, "big") + content
        response_to = random.choice((None, (random.randrange(92), random.randrange(14)), (18, random.randrange(5))))
        assert graded(data, response_to) == carefully(data, response_to), (data.hex(), response_to)


def test_the_kernel_knows_tls_as_others_do() -> None:
    random = Random(15)
    verdicts: Counter[bool] = Counter()
    for _ in range(20_000):
        data = bytearray(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        for _ in range(random.randint(0, 2)):
            data[random.randrange(6)] = random.choice((0, 1, 2, 3, 4, 5, 21, 22, 23, 71, 72, 73, 255))
        del data[random.choice((11, 11, 7, 6, 5, 3, 1)) :]
        held = np.frombuffer(bytearray(data), np.uint8)
        says_tls = bool(is_tls(held, 0, len(data)))
        assert says_tls == (other_protocol(data, True) == "tls"), data.hex()
        verdicts[says_tls] += 1
    assert min(verdicts[True], verdicts[False]) > 1_000
