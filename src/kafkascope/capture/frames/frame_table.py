"""Defines the tables of framing, plain arrays that its kernel and Python share, and turns its output into `Frames`."""

import mmap
from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.flow import Bytes, Frames, Int32s, Int64s, Problem, ProtocolVerdict, SinglePiece, Uint8s
from kafkascope.capture.frames.detect.start import UNKNOWN, Opening
from kafkascope.capture.tcp.stream_table import longer
from kafkascope.limits import MAX_UNFINISHED_BYTES

# `place` of a stream that isn't split at the moment: its pieces go to Python, or are skipped, or nothing of its
# connection was seen yet and the kernel looks at its start (`detect.start`).
PYTHON, SKIP, FRESH = -1, -2, -3


class Partial(IntEnum):
    """The columns of `state`, a row each for requests (2 * slot) and responses (2 * slot + 1) of a Kafka connection."""

    HAVE = 0  # bytes of the length prefix
    PREFIX = 1
    LENGTH = 2  # of the frame, -1 while its prefix is not complete
    FILLED = 3
    HEAD = 4  # chunks of the frame, -1 where it has none, and MOVED
    TAIL = 5
    OFFSET = 6  # where the prefix is in the stream
    FIRST_NS = 7
    LAST_NS = 8
    PACKET = 9
    DAMAGED = 10  # bytes of the frame are missing: 1, and as many as are kept of those before
    TOKENS = 11  # 1: raw SASL tokens may come instead of frames
    SHORT = 12  # frames in a row that are too short for a header


class ConnSlot(IntEnum):
    """The columns of `slots`."""

    CONNECTION = 0
    HANDSHAKE = 1
    HANDSHAKE_ID = 2
    ASKED = 3
    CLIENT = 4
    OPEN_STREAMS = 5


# Requests that a connection remembers, to recognize its responses after a gap: more are rarely in flight.
REMEMBERED = 64

CHUNK = 4_096
# What was collected of a long frame is in the output already, and its chunks are free.
MOVED = -2
# So much of a long frame is in memory twice while it moves.
STEP_CHUNKS = 1_024
FIRST_CONNECTIONS, FIRST_SLOTS, FIRST_CHUNKS = 64, 64, 64


class FrameCount(IntEnum):
    """The places of `counts`."""

    ROWS = 0
    BODY = 1
    FREE_CHUNK = 2
    FREE_CHUNKS = 3
    WANT_CHUNKS = 4
    WANT_BODY = 5
    FREE_SLOTS = 6
    WAITING = 7  # connections among `waiting`
    LEFT = 8  # those of them that were left to Python


class Cursor(IntEnum):
    """The places of a cursor."""

    PIECE = 0  # the next piece of the batch
    BYTE = 1  # the next byte in the piece
    REPLAY = 2  # the piece that is read again before PIECE, -1 where none is
    LOOKING = 3  # 1 while the piece waits with others for a verdict on its connection


_START = (0, 0, -1, 0)


class Tables(NamedTuple):
    place: Int64s  # stream to row of `state`, or PYTHON, SKIP or FRESH
    opened: Uint8s  # stream to 1 if its start was recorded
    starters: Int64s  # connection to who opened it, as `detect.start` has it
    first: Int64s  # connection to the state of its start, in the columns of `Opening`
    waiting: Int64s  # connections with first pieces in this batch
    free_slots: Int64s  # a stack
    state: Int64s
    slots: Int64s
    asked: Int32s  # (slot, n, (correlation id, API key, version)), a ring
    pool: Bytes
    following: Int64s  # chunk to the next of its frame, or of the free ones
    counts: Int64s


class PieceColumns(NamedTuple):
    """The columns of `Pieces`, in types that the kernel is compiled for once. `start` counts through `data`, then
    `waited`."""

    kind: Uint8s
    stream: Int32s
    offset: Int64s
    start: Int64s
    length: Int64s
    time: Int64s
    packet: Int64s
    data: Bytes
    waited: Bytes


class Output(NamedTuple):
    """The columns of `Frames`."""

    body: Bytes
    ends: Int64s
    kind: Uint8s
    connection: Int32s
    is_response: Uint8s
    offset: Int64s
    lost: Int64s
    first: Int64s
    time: Int64s
    packet: Int64s


def held_of(state: Sequence[int]) -> int:
    """Bytes of an unfinished frame that are kept; of a damaged one those before the first that is missing."""
    return state[Partial.FILLED] if not state[Partial.DAMAGED] else state[Partial.DAMAGED] - 1


def make_tables() -> Tables:
    """With room to begin with: a small recording needs no more."""
    count = np.zeros(len(FrameCount), np.int64)
    count[FrameCount.FREE_SLOTS] = FIRST_SLOTS
    count[FrameCount.FREE_CHUNKS] = FIRST_CHUNKS
    following = np.arange(1, FIRST_CHUNKS + 1)
    following[-1] = -1
    return Tables(
        place=np.full(2 * FIRST_CONNECTIONS, FRESH, np.int64),
        opened=np.zeros(2 * FIRST_CONNECTIONS, np.uint8),
        starters=np.full(FIRST_CONNECTIONS, UNKNOWN, np.int64),
        first=np.zeros((FIRST_CONNECTIONS, len(Opening)), np.int64),
        waiting=np.empty(FIRST_CONNECTIONS, np.int64),
        free_slots=np.arange(FIRST_SLOTS - 1, -1, -1),
        state=np.zeros((2 * FIRST_SLOTS, len(Partial)), np.int64),
        slots=np.empty((FIRST_SLOTS, len(ConnSlot)), np.int64),
        asked=np.empty((FIRST_SLOTS, REMEMBERED, 3), np.int32),
        pool=np.empty(FIRST_CHUNKS * CHUNK, np.uint8),
        following=following,
        counts=count,
    )


def make_piece_columns(pieces: Sequence[SinglePiece]) -> PieceColumns:
    data = np.frombuffer(bytearray().join([piece.data for piece in pieces]), np.uint8)
    kinds, streams, *rest, _ = zip(*pieces, strict=True) if pieces else ((),) * 7
    offsets, times, packets, lengths = rest
    starts = [0, *accumulate(len(piece.data) for piece in pieces)][: len(pieces)]
    numbers = np.array((offsets, starts, lengths, times, packets), np.int64)
    offset, start, length, time, packet = numbers
    return PieceColumns(
        np.array(kinds, np.uint8), np.array(streams, np.int32), offset, start, length, time, packet, data, data[:0]
    )


def make_cursor() -> Int64s:
    return np.array(_START, np.int64)


def make_output(rows: int, body: Bytes) -> Output:
    ends = np.empty(rows + 1, np.int64)
    ends[0] = 0
    return Output(
        body, ends, np.empty(rows, np.uint8), np.empty(rows, np.int32), np.empty(rows, np.uint8),
        np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int64),
        np.empty(rows, np.int64),
    )  # fmt: skip


def wider(output: Output, size: int) -> Output:
    """With room for twice as many rows, and for `size` bytes."""
    rows = 2 * len(output.kind) + 64
    columns = (longer(column, rows) for column in output[2:])
    return Output(longer(output.body, size), longer(output.ends, rows + 1), *columns)


def put_row(output: Output, counts: Int64s, values: tuple[int, ...]) -> None:
    """A row without a body, in the order of the columns; the output has room."""
    row = int(counts[FrameCount.ROWS])
    output.ends[row + 1] = counts[FrameCount.BODY]
    columns: Any = output[2:]
    for number, value in enumerate(values):
        columns[number][row] = value
    counts[FrameCount.ROWS] += 1


def take_frames(
    output: Output, counts: Int64s, problems: tuple[Problem, ...], verdicts: tuple[ProtocolVerdict, ...] = ()
) -> Frames:
    rows, size = int(counts[FrameCount.ROWS]), int(counts[FrameCount.BODY])
    counts[FrameCount.ROWS] = counts[FrameCount.BODY] = 0
    return Frames(
        output.body[:size],
        output.ends[: rows + 1],
        output.kind[:rows],
        output.connection[:rows],
        output.is_response[:rows],
        output.offset[:rows],
        output.lost[:rows],
        output.first[:rows],
        output.time[:rows],
        output.packet[:rows],
        problems,
        verdicts,
    )


# Never written to: it has no room.
NO_OUTPUT = make_output(0, np.empty(0, np.uint8))
NO_FRAMES = take_frames(NO_OUTPUT, np.zeros(len(FrameCount), np.int64), ())


def with_streams(tables: Tables, streams: int) -> Tables:
    """With room for streams numbered below `streams`, an even number."""
    if len(tables.place) >= streams and 2 * len(tables.first) >= streams:
        return tables
    return Tables(
        longer(tables.place, streams, FRESH),
        longer(tables.opened, streams, 0),
        longer(tables.starters, streams // 2, UNKNOWN),
        longer(tables.first, streams // 2, 0),
        longer(tables.waiting, streams // 2),
        *tables[5:],
    )


def are_done(tables: Tables, count: int) -> npt.NDArray[np.bool_]:
    """Which of the first `count` connections are done: all their frames are out, and no more are looked for."""
    done = np.zeros(count, np.bool_)
    places = tables.place[: 2 * count].reshape(-1, 2)
    done[: len(places)] = (places == SKIP).all(axis=1)
    return done


def with_slots(tables: Tables) -> Tables:
    """With free slots, after the last one was taken."""
    before = len(tables.slots)
    slots = longer(tables.slots, before + 1)
    tables.counts[FrameCount.FREE_SLOTS] = len(slots) - before
    free = longer(tables.free_slots, len(slots))
    free[: len(slots) - before] = np.arange(len(slots) - 1, before - 1, -1)
    return tables._replace(
        slots=slots,
        state=longer(tables.state, 2 * len(slots), 0),
        asked=longer(tables.asked, len(slots)),
        free_slots=free,
    )


def with_chunks(tables: Tables) -> Tables | None:
    """With the free chunks that the kernel wants, None where that would be too many."""
    counts = tables.counts
    before = len(tables.following)
    wanted = int(counts[FrameCount.WANT_CHUNKS] - counts[FrameCount.FREE_CHUNKS])
    after = min(max(before + wanted, 2 * before, 64), MAX_UNFINISHED_BYTES // CHUNK)
    if after - before < wanted:
        return None
    pool = np.frombuffer(mmap.mmap(-1, after * CHUNK, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)
    for start in range(0, len(tables.pool), STEP_CHUNKS * CHUNK):
        part = tables.pool[start : start + STEP_CHUNKS * CHUNK]
        pool[start : start + len(part)] = part
        give_back(tables.pool, start, len(part))
    following = np.arange(1, after + 1, dtype=np.int64)
    following[:before] = tables.following
    following[-1] = counts[FrameCount.FREE_CHUNK]
    counts[FrameCount.FREE_CHUNK] = before
    counts[FrameCount.FREE_CHUNKS] += after - before
    return tables._replace(pool=pool, following=following)


def give_back(pool: Bytes, start: int, count: int) -> None:
    """Returns pages of a pool that are no longer read to the system, if the pool is a mapping of its own."""
    base: Any = pool.base
    memory = base.obj if isinstance(base, memoryview) else None
    if isinstance(memory, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        if first < start + count:
            memory.madvise(mmap.MADV_DONTNEED, first, start + count - first)


def join_frames(parts: list[Frames]) -> Frames:
    """Several batches as one."""
    problems = tuple(problem for part in parts for problem in part.problems)
    verdicts = tuple(verdict for part in parts for verdict in part.verdicts)
    parts = [part for part in parts if len(part.kind)] or parts[:1]
    if len(parts) == 1:
        return replace(parts[0], problems=problems, verdicts=verdicts)
    bodies = [part.body[part.ends[0] : part.ends[-1]] for part in parts]
    starts = np.cumsum([0, *map(len, bodies)])
    ends = [part.ends[1:] - part.ends[0] + start for part, start in zip(parts, starts, strict=False)]
    columns = ("kind", "connection", "is_response", "offset", "lost", "first_ns", "time_ns", "packet")
    joined: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
    zero = np.zeros(1, dtype=np.int64)
    joined |= {"body": np.concatenate(bodies), "ends": np.concatenate([zero, *ends])}
    return Frames(problems=problems, verdicts=verdicts, **joined)
