"""Few frames of each of many messages in, a record batch for each message out, all its versions together. One call of
the kernel reads and packs them all: of a few frames the calls take longer than the reading."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkascope.columnar.buffers import SMALL_BYTES, allocate
from kafkascope.columnar.ipc_form import form_of
from kafkascope.columnar.kernel import small_batches_kernel as words_of
from kafkascope.columnar.kernel.entry import READ_FEW, kernel
from kafkascope.columnar.operations import TOP
from kafkascope.columnar.plan import Ints
from kafkascope.columnar.program import compile_program
from kafkascope.columnar.scratch import FewJob, Scratch, give_back, take
from kafkascope.columnar.tables import full_schema

# The tables of one call share memory: so much of it, or what the largest takes.
_ROOM_BYTES = 256 * 1024
VERSION_COLUMN = "api_version"
_VERSION = pa.field(VERSION_COLUMN, pa.int16())


@dataclass(frozen=True, slots=True, eq=False)
class Few:
    """Frames sorted by message and version, of each at most `SMALL_BYTES`: frame n goes from number n of `ends` to the
    next in `content`. Those of the (name, version) number i of `messages` begin with number i of `starts`, which has
    one more; a name that is None stands for frames that are left out. Nobody checks these."""

    messages: Sequence[tuple[str | None, int]]
    starts: Sequence[int]
    content: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.int32]
    # What the column of a text for each frame is called, texts of which none is null, and which of them it is.
    key: str | None = None
    keys: pa.StringArray | None = None
    order: Ints | None = None


class Made(NamedTuple):
    """Of one message, numbers `first` to before `end` of `messages`. No batch where `decode_columns` must see to them:
    a frame that the kernel does not read, a tag that nobody knows, more frames than there is room for."""

    name: str
    first: int
    end: int
    batch: pa.RecordBatch | None


@dataclass(frozen=True, slots=True, eq=False)
class _Whole:
    """What a message's table is written by, as words for the kernel."""

    schema: pa.Schema
    address: int
    kept: tuple[Ints, bytes]


def decode_few(few: Few) -> Iterator[Made]:
    """In front of a message's own columns stand its key, if there is one, and `api_version`."""
    scratch = take()
    jobs = _jobs(few, scratch)
    starts = np.array(few.starts, np.int64)
    count = starts[1:] - starts[:-1]
    works = np.empty((len(jobs), words_of.WORK_WORDS), np.int64)
    works[:, words_of.WORK_JOB] = [
        job.address if rows <= job.most else 0 for job, rows in zip(jobs, count.tolist(), strict=True)
    ]
    works[:, words_of.WORK_FRAMES] = count
    found = _messages(few)
    wholes = [_whole(name, few.key) for name, _, _ in found]
    rows = [(*at, few.starts[at[0]], whole.address, 0, 0) for (_, *at), whole in zip(found, wholes, strict=True)]
    messages = np.array(rows, np.int64).reshape(-1, words_of.MESSAGE_WORDS)
    versions = np.repeat(np.array([version for _, version in few.messages], np.int16), count)
    texts = few.order if few.order is not None else count
    front = np.array([*_text(few.keys), *_addresses(texts, versions)], np.int64)
    parts = np.empty(len(works), np.int64)
    at = _addresses(works, messages, few.content, few.ends, front)
    room = scratch.places.status_at, *_addresses(scratch.stage), len(scratch.stage), *_addresses(parts)
    task = np.array([*at, *room], np.int64)
    (task_at,) = _addresses(task)
    made: list[pa.Buffer] = []
    size = _ROOM_BYTES
    while len(made) < len(found):
        target = allocate(size)
        end, used = kernel()(READ_FEW, task_at, len(made), len(found), target.address, size, 0, 0)
        scratch.used(used)
        if end == len(made):
            size *= 2
        made += [target] * (end - len(made))
    give_back(scratch)
    places = messages[:, words_of.TABLE_AT : words_of.TABLE_SIZE + 1].tolist()
    for (name, first, last), whole, target, (start, packed) in zip(found, wholes, made, places, strict=True):
        batch = None
        if packed:
            batch = pa.ipc.read_record_batch(target.slice(start, packed), whole.schema)
        yield Made(name, first, last, batch)


def _messages(few: Few) -> list[tuple[str, int, int]]:
    """Name, and where those of its versions begin and end."""
    found: list[tuple[str | None, int]] = []
    before = None
    for index, (name, _) in enumerate(few.messages):
        if name != before:
            found.append((name, index))
            before = name
    ends = [index for _, index in found[1:]] + [len(few.messages)]
    return [(name, start, end) for (name, start), end in zip(found, ends, strict=False) if name is not None]


def _addresses(*arrays: npt.NDArray[Any]) -> list[int]:
    """Quicker than numpy says them itself."""
    return [pa.py_buffer(array).address for array in arrays]


def _text(keys: pa.StringArray | None) -> tuple[int, int]:
    """Addresses of its offsets and bytes."""
    if keys is None:
        return 0, 0
    _, offsets, data = keys.buffers()
    return offsets.address + 4 * keys.offset, data.address if data is not None else 0


def _jobs(few: Few, scratch: Scratch) -> list[FewJob]:
    while True:
        area, known = scratch.area, scratch.few
        found = [known.get(one) or _learn(scratch, *one) for one in few.messages]
        # Where one of them wanted a larger area, those before it lie in what is none any more.
        if scratch.area is area:
            return found


def _learn(scratch: Scratch, name: str | None, version: int) -> FewJob:
    made = FewJob(0, 0, None)
    if name is not None:
        job, _, rooms = scratch.job(compile_program(name, version), SMALL_BYTES)
        if job.packable:
            made = FewJob(job.address, min(int(rooms[TOP]), scratch.places.count), job)
    scratch.few[name, version] = made
    return made


@cache
def _whole(name: str, key: str | None) -> _Whole:
    front = [] if key is None else [pa.field(key, pa.string())]
    schema = pa.schema([*front, _VERSION, *full_schema(name)])
    form = form_of(schema)
    data = np.frombuffer(form.data, np.uint8)
    numbers = form.nodes_at, form.buffers_at, form.length_at, form.body_length_at
    words = np.array([data.ctypes.data, len(data), *numbers], np.int64)
    return _Whole(schema, words.ctypes.data, (words, form.data))
