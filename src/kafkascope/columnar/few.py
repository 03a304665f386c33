"""Few frames of each of many messages in, a record batch for each out. One call of the kernel reads and packs them all:
of a few frames the calls take longer than the reading."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kafkascope.columnar.buffers import SMALL_BYTES, allocate
from kafkascope.columnar.compiled import FEW, kernel
from kafkascope.columnar.few_kernel import AT, BASE, COUNT, ENDS, JOB, SIZE, WORDS
from kafkascope.columnar.operations import TOP
from kafkascope.columnar.plan import Ints, Job
from kafkascope.columnar.program import compile_program
from kafkascope.columnar.scratch import Scratch, give_back, take
from kafkascope.columnar.tables import full_schema

# The tables of one call share memory: so much of it, or what the largest takes.
_ROOM_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class Few:
    """Of each message at most `SMALL_BYTES`. Number n of message i goes from `base[i]` and the n-th int32 at
    `ends_at[i]` to `base[i]` and the next: nobody checks these."""

    messages: Sequence[tuple[str, int]]
    base: Ints
    ends_at: Ints
    count: Ints


def decode_few(few: Few) -> Iterator[pa.RecordBatch | None]:
    """One for each message; None where `decode_columns` must see to it: a frame that the kernel does not read, a tag
    that nobody knows, more frames than there is room for."""
    scratch = take()
    jobs = _jobs(few, scratch)
    works = np.zeros((len(jobs), WORDS), dtype=np.int64)
    room = np.array([rooms[TOP] if job.packable else 0 for job, _, rooms in jobs], dtype=np.int64)
    fits = few.count <= np.minimum(room, scratch.places.count)
    works[:, JOB] = np.where(fits, np.array([job.address for job, _, _ in jobs], dtype=np.int64), 0)
    works[:, BASE], works[:, ENDS], works[:, COUNT] = few.base, few.ends_at, few.count
    made: list[pa.Buffer] = []
    size = _ROOM_BYTES
    while len(made) < len(works):
        target = allocate(size)
        begin = int(works.ctypes.data), len(made), len(works)
        end, used = kernel()(FEW, *begin, target.address, size, scratch.places.status_at, 0)
        scratch.used(used)
        if end == len(made):
            size *= 2
        made += [target] * (end - len(made))
    give_back(scratch)
    for (name, _), target, (start, packed) in zip(few.messages, made, works[:, AT : SIZE + 1].tolist(), strict=True):
        if packed:
            yield pa.ipc.read_record_batch(pa.ipc.read_message(target.slice(start, packed)), full_schema(name))
        else:
            yield None


def _jobs(few: Few, scratch: Scratch) -> list[tuple[Job, Ints, Ints]]:
    while True:
        area = scratch.area
        found = [scratch.job(compile_program(name, version), SMALL_BYTES) for name, version in few.messages]
        # Where one of them wanted a larger area, those before it lie in what is none any more.
        if scratch.area is area:
            return found
