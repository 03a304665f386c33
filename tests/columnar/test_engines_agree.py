"""The kernel and the careful codec, on every layout of the catalog: the same value or the same error, row by row."""

import os
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from kafkascope.codec.message import decode, encode
from kafkascope.codec.result import UNKNOWN_TAGS
from kafkascope.columnar import buffers as buffers_module
from kafkascope.columnar.buffers import Buffers
from kafkascope.columnar.decode import decode_columns, full_schema
from kafkascope.columnar.frames import frames_of
from kafkascope.columnar.program import compile_program
from kafkascope.columnar.scratch import Scratch
from kafkascope.schema.layouts.layout import LayoutField, layout
from tests.columnar.expected import expected, without_nulls
from tests.support.mutations import mutation, truncations
from tests.support.pairs import CHUNKS, Place, chunk_of, every_place
from tests.support.values import random_value
from tests.support.variety import lengthened

SOAK = bool(os.environ.get("KAFKASCOPE_SOAK"))
SEED = 17
CASES = 24
MUTATIONS = 3_000 if SOAK else 60
# Longer frames are for the sizes at which the kernel changes its way; mutating them would hit strings alone.
LARGEST = 4_000 if SOAK else 500


def canonical(place: Place) -> list[bytes]:
    """Boundaries of every type, random values, and long arrays; as Kafka would write them."""
    name, version, release = place
    known = layout(*place)
    values = [random_value(known, case) for case in range(CASES)]
    random = Random(f"{place} {SEED}")
    values += [lengthened(known, values, random, size) for size in ((6, 9), (30, 34), (126, 129), (255, 300))]
    return [encode(name, version, value, release) for value in values if UNKNOWN_TAGS not in str(value)]


def tagged(place: Place) -> list[bytes]:
    """The same with tags that the catalog does not know: behind the message, in every struct, in some; one or several,
    small and large."""
    name, version, release = place
    known = layout(*place)
    if not known.flexible:
        return []
    values = [random_value(known, case) for case in range(CASES)]
    frames = []
    for case, value in enumerate(value for value in values if UNKNOWN_TAGS not in str(value)):
        random = Random(f"{place} {SEED} {case}")
        more = _with_tags(known.fields, value, random, (0.0, 0.1, 0.5, 1.0)[case % 4], always=True)
        frames.append(encode(name, version, more, release))
    return frames


def _with_tags(
    fields: tuple[LayoutField, ...], value: dict[str, Any], random: Random, chance: float, *, always: bool = False
) -> dict[str, Any]:
    made = dict(value)
    for field in fields:
        content = value[field.name]
        if field.type == "struct" and field.tag is None and content is not None:
            items = [_with_tags(field.fields, item, random, chance) for item in (content if field.array else [content])]
            made[field.name] = items if field.array else items[0]
    if always or random.random() < chance:
        free = sorted({0, 1, 2, 40, 127, 128, 70_000, 2**31 - 1} - {field.tag for field in fields})
        made[UNKNOWN_TAGS] = [
            {"tag": tag, "data": bytes(random.choice((0, 1, 5, 127, 128)))}
            for tag in sorted(random.sample(free, random.choice((1, 1, 1, 2, 4))))
        ]
    return made


def everywhere(place: Place) -> list[bytes]:
    """Unknown tags within known ones too, which the codec names in an order of its own."""
    name, version, release = place
    values = [random_value(layout(*place), case) for case in range(CASES)]
    return [encode(name, version, value, release) for value in values if UNKNOWN_TAGS in str(value)]


def mutated(place: Place, frames: list[bytes]) -> list[bytes]:
    name, version, release = place
    small = [data for data in frames if len(data) <= LARGEST] or frames[:1]
    spans = [decode(name, version, data, release, spans=True).spans for data in small]
    made = list(truncations(min(small, key=len)))[: MUTATIONS // 4]
    for case in range(MUTATIONS - len(made)):
        random = Random(f"{place} {SEED} {case}")
        chosen = random.randrange(len(small))
        made.append(mutation(small[chosen], spans[chosen], random)[1])
    return made


def check(place: Place, frames: list[bytes]) -> None:
    table = decode_columns(place[0], place[1], pa.array(frames, type=pa.binary()), place[2])
    table.validate(full=True)
    assert table.schema == full_schema(layout(*place).message.name)
    for data, row in zip(frames, table.to_pylist(), strict=True):
        actual, values = without_nulls(row), without_nulls(expected(place, data))
        assert actual == values, f"{place}, seed {SEED}: {data.hex()}"


def left_over(place: Place, frames: list[bytes]) -> list[bytes]:
    """Those that the kernel leaves to the careful codec."""
    scratch = Scratch()
    for portion in frames_of(pa.array(frames, type=pa.binary()), scratch.places, 1 << 30):
        Buffers(compile_program(*place), scratch).read(portion)
    return [frame for frame, status in zip(frames, scratch.places.status, strict=False) if status]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_kernel_alone_reads_all_that_kafka_writes(chunk: int) -> None:
    for place in chunk_of(every_place(), chunk):
        frames = canonical(place)
        check(place, frames)
        assert left_over(place, frames) == [], place


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_kernel_alone_keeps_tags_that_the_catalog_does_not_know(chunk: int) -> None:
    for place in chunk_of(every_place(), chunk):
        frames = tagged(place)
        # Others between them, so that the kernel changes its way and back.
        mixed = [frame for pair in zip(frames, canonical(place), frames, strict=False) for frame in pair]
        check(place, [*frames, *mixed, *everywhere(place)])
        assert left_over(place, [*frames, *mixed]) == [], place


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_mutated_frames_get_the_codecs_verdict_and_cost_no_other_row(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Room for one frame at a time: buffers grow again and again.
    for name in ("SMALL_BYTES", "FIRST_BYTES", "RECORDS_BYTES"):
        monkeypatch.setattr(buffers_module, name, 1)
    for place in chunk_of(every_place(), chunk):
        good = [*canonical(place), *tagged(place)]
        frames = [*good, *mutated(place, good)]
        Random(SEED).shuffle(frames)
        check(place, frames)
