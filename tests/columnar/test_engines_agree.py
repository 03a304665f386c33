"""The kernel and the careful codec, on every layout of the catalog: the same value or the same error, row by row."""

import os
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from kafkascope.codec.message import decode, encode
from kafkascope.codec.result import UNKNOWN_TAGS
from kafkascope.columnar import buffers as buffers_module
from kafkascope.columnar.buffers import Buffers
from kafkascope.columnar.decode import decode_columns, full_schema
from kafkascope.columnar.program import compile_program
from kafkascope.schema.layout import layout
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
        found, wanted = without_nulls(row), without_nulls(expected(place, data))
        assert found == wanted, f"{place}, seed {SEED}: {data.hex()}"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_kernel_alone_reads_all_that_kafka_writes(chunk: int) -> None:
    for place in chunk_of(every_place(), chunk):
        frames = canonical(place)
        check(place, frames)
        ends = np.cumsum([0, *map(len, frames)], dtype=np.int64)
        joined = np.frombuffer(b"".join(frames) or b"\0", dtype=np.uint8)
        left = Buffers(compile_program(*place), len(frames)).read(joined.ctypes.data, ends)
        assert not left.any(), f"{place}: left to the careful codec: {frames[int(left.argmax())].hex()}"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_mutated_frames_get_the_codecs_verdict_and_cost_no_other_row(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Room for one frame at a time: buffers grow again and again.
    monkeypatch.setattr(buffers_module, "FIRST_BYTES", 1)
    for place in chunk_of(every_place(), chunk):
        good = canonical(place)
        frames = [*good, *mutated(place, good)]
        Random(SEED).shuffle(frames)
        check(place, frames)
