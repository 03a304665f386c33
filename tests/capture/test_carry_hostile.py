"""A forged state is refused, or leads no kernel astray: the next run ends as it would with another recording.

`KAFKASCOPE_SEED` chooses other forgeries; with `KAFKASCOPE_SOAK` set there are many more."""

import json
import os
import random
from contextlib import suppress
from typing import Any

import pytest

from kafkascope.capture.reader import Reading
from kafkascope.capture.resume.parse import parse_carried
from kafkascope.capture.resume.run import Part
from kafkascope.errors import InputError
from tests.captures import capture
from tests.support.lake_damage import changed
from tests.support.parts import Named, random_cut, random_pcap

SOAK = bool(os.environ.get("KAFKASCOPE_SOAK"))
SEED = int(os.environ.get("KAFKASCOPE_SEED", 0)) or (random.randrange(1 << 32) if SOAK else 15)
CASES = 20_000 if SOAK else 500


def left(data: bytes, seed: int) -> tuple[list[str], list[Named]]:
    """What a run over the first half leaves, and both halves."""
    first, second = (Named(content, str(number)) for number, (_, content) in enumerate(random_cut(data, 2, seed)))
    reading = Reading([first], part=Part(last=False))
    for _ in reading.batches():
        pass
    return [carried.to_json() for carried in reading.carried], [first, second]


def test_a_forged_state_is_refused_or_harms_nobody() -> None:
    stories = [left(capture("share"), 3), *(left(random_pcap(seed), seed) for seed in range(12))]
    stories = [story for story in stories if story[0]]
    refused = 0
    for number in range(CASES):
        chance = random.Random(f"{SEED} {number}")
        states, (first, second) = chance.choice(stories)
        at = chance.randrange(len(states))
        value, where = changed(json.loads(states[at]), chance)
        print(f"KAFKASCOPE_SEED={SEED}, case {number}: {where}")
        forged = [*states[:at], json.dumps(value), *states[at + 1 :]]
        try:
            carried = [parse_carried(state) for state in forged]
        except InputError as error:
            assert "the state of an earlier run" in str(error)  # noqa: PT017
            refused += 1
            continue
        first.seek(0)
        second.seek(0)
        reading = Reading([second], part=Part(carried=carried, reopen=lambda uri: first if uri == first.name else None))  # noqa: B023
        with suppress(InputError):
            for _ in reading.batches():
                pass
    assert CASES // 3 < refused < CASES


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("streams", 0, "row", 4), 5),  # the first of the early segments: a row of a table
        (("streams", 0, "row", 5), 5),
        (("streams", 0, "state", 4), 3),  # the first chunk of a frame
        (("streams", 0, "state", 5), 3),
        (("streams", 0, "place"), -5),
        (("streams", 0, "place"), 7 << 40),
        (("streams", 0, "framing"), 12),
        (("streams", 0, "row", 2), 1 << 62),
        (("streams", 0, "row", 2), 1.5),
        (("streams", 0, "row", 2), True),
        (("streams", 0, "early"), [[0, 1 << 40, 1 << 50, 0, 0]]),
        (("streams", 0, "delivered"), [[0, 0]] * 33),
        (("starter",), 9),
        (("ended",), -1),
        (("ended",), 4),
        (("protocol",), "smtp"),
        (("client",), 2),
        (("client",), None),
        (("port_a",), 1 << 16),
        (("address_a",), "00"),
        (("connection_id",), "x" * 16),
        (("slot",), None),
        (("asked",), [[1 << 40, 0, 0]]),
        (("waiting",), [[0, 0, 0, 1 << 40, 0, 0, 0, 0, 0]]),
        (("waiting",), [[0, 2, 0, 4, 0, 0, 0, 0, 0]]),
        (("waiting",), [[0, 0, 0, 4, 0, 0, 1 << 60, 0, 0]]),
        (("files",), []),
        (("place",), 1 << 60),
    ],
)
def test_numbers_that_reach_a_table_are_those_of_a_run(place: tuple[Any, ...], value: Any) -> None:
    states, _ = left(capture("share"), 3)
    values = next(state for state in map(json.loads, states) if state["place"] >= 0 and state["slot"])
    assert parse_carried(json.dumps(values))
    at = values
    for step in place[:-1]:
        at = at[step]
    at[place[-1]] = value
    with pytest.raises(InputError, match="can't be read"):
        parse_carried(json.dumps(values))


def test_deep_json_is_no_state() -> None:
    for text in ("[" * 100_000, '{"form":' * 100_000, '{"form":1e400}', "1" * 5_000, ""):
        with pytest.raises(InputError, match="the state of an earlier run"):
            parse_carried(text)
