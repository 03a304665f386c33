"""Edits the state that a run leaves for the next one, as the lake keeps it, and reads the rest of the recording with
it. The first part may be gone by then."""

import json
from functools import cache
from random import Random
from typing import Any

from kafkascope.capture.reader import Reading
from kafkascope.capture.resume.parse import parse_carried
from kafkascope.capture.resume.run import Part
from kafkascope.errors import InputError
from tests.hostile.captures import bytes_edited
from tests.hostile.json_edits import edit
from tests.hostile.reading import REFUSED, expect_no_kernel_error, read_files
from tests.support.parts import Named, cut, pcap_records, random_pcap

_BASES, _CUTS = 30, 4


def make(random: Random) -> bytes:
    number, place = random.randrange(_BASES), random.randrange(_CUTS)
    states = [json.loads(text) for text in left_by(number, place)]
    for _ in range(random.choice((1, 1, 2, 4))):
        if states:
            edit(states if random.random() < 0.05 else random.choice(states), random)
    texts = [json.dumps(state) for state in states]
    if texts and random.random() < 0.05:
        at = random.randrange(len(texts))
        texts[at] = bytes_edited(texts[at].encode(), random).decode(errors="replace")
    return case_of(number, place, texts, last=random.random() < 0.5, gone=random.random() < 0.15)


def case_of(number: int, place: int, states: list[str], *, last: bool = True, gone: bool = False) -> bytes:
    """Of a recording and the place where it is cut; whether more runs follow, and whether its first part is gone."""
    return json.dumps({"base": number, "cut": place, "left": states, "last": last, "gone": gone}).encode()


def run(data: bytes) -> str:
    case = json.loads(data)
    first, second = _files(case["base"], case["cut"])

    def reopen(uri: Any) -> Named | None:
        return None if case["gone"] or uri != "0" else Named(first, "0")

    try:
        carried = [parse_carried(text) for text in case["left"]]
    except InputError as error:
        expect_no_kernel_error(error)
        return REFUSED
    return read_files([("1", second)], Part(carried=carried, last=case["last"], reopen=reopen))


@cache
def _files(number: int, place: int) -> tuple[bytes, bytes]:
    data = random_pcap(number, talks=2, longest=4)
    packets = len(pcap_records(data)[1])
    at = max(1, min(packets - 1, packets * (place + 1) // (_CUTS + 1)))
    first, *second = [part for _, part in cut(data, [at])]
    return first, second[0] if second else data[:24]


@cache
def left_by(number: int, place: int) -> tuple[str, ...]:
    reading = Reading(Named(_files(number, place)[0], "0"), part=Part(last=False))
    for _ in reading.batches():
        pass
    return tuple(state.to_json() for state in reading.carried)
