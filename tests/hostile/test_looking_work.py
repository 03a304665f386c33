"""Looking for Kafka in bytes that nobody can split yet is linear in the recording, however often they come."""

import sys
from collections.abc import Callable
from types import FrameType

import numpy as np
import pytest

from kafkascope.capture.base.flow import (
    Connection,
    FrameKind,
    PieceKind,
    Pieces,
)
from kafkascope.capture.frames.detect.credit import BYTES_EARN, FIRST_CREDIT, PIECE_EARNS, RESERVE
from kafkascope.capture.frames.framing import Framer
from tests.hostile.breaks import REQUEST_HEADS, RESPONSE_HEADS, empty_responses
from tests.support.flows import endpoints
from tests.support.framing import Stream, heartbeats, hello, of
from tests.support.traffic import REQUEST, RESPONSE

COUNT = 12_000
A_CONNECTION = 3_000
# Calls that a piece of one byte takes to be kept and to be looked at now and then, and those that the first
# credit pays for.
MOST_CALLS = 1_000_000 + 40 * COUNT


def calls(work: Callable[[], object]) -> int:
    """How many calls in code of kafkascope that takes; compiling kernels is not among them."""
    count = 0

    def tell(frame: FrameType, event: str, _value: object) -> None:
        nonlocal count
        count += event in ("call", "c_call") and "kafkascope" in frame.f_code.co_filename

    sys.setprofile(tell)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def single_bytes(data: bytes, streams: list[int], first: int = 0) -> Pieces:
    """The data in each stream from offset `first` on, a byte a piece, the streams in turn."""
    turns = len(data)
    count = turns * len(streams)
    turn = np.repeat(np.arange(turns), len(streams))
    stream = np.tile(np.array(streams, np.int32), turns)
    ones, order = np.ones(count, np.int64), np.arange(count)
    kinds = np.full(count, PieceKind.BYTES, np.uint8)
    return Pieces(np.frombuffer(data, np.uint8), kinds, stream, first + turn, turn, ones, order, order)


@pytest.mark.parametrize("heads", [REQUEST_HEADS, RESPONSE_HEADS, empty_responses(1_000)])
def test_tiny_pieces_of_unknown_connections(heads: bytes) -> None:
    data = (heads * (A_CONNECTION // len(heads) + 1))[:A_CONNECTION]
    streams = [2 * number for number in range(COUNT // A_CONNECTION)]
    framer = Framer([Connection(n, 0, endpoints(0), 0, 0, (None, None), False) for n in range(len(streams))])
    pieces = single_bytes(data, streams)
    assert calls(lambda: framer.feed(pieces)) < MOST_CALLS
    assert len(framer.state.undecided) == len(streams)


def test_tiny_pieces_that_one_segment_brings() -> None:
    """As in a retransmission with other bytes: it brings each of the segments that waited, and its own bytes between
    them. The file pays for one packet."""
    streams, turns, size = 100, 33, 12
    framer = Framer([Connection(n, 0, endpoints(0), 0, 0, (None, None), False) for n in range(streams)])
    count = streams * turns
    stream = np.repeat(np.arange(0, 2 * streams, 2, dtype=np.int32), turns)
    offset = np.tile(size * np.arange(turns), streams)
    start, order = np.zeros(count, np.int64), np.arange(count)
    kinds = np.full(count, PieceKind.BYTES, np.uint8)
    pieces = Pieces(np.frombuffer(b"B" * size, np.uint8), kinds, stream, offset, start, start + size, order, order)
    assert calls(lambda: framer.feed(pieces)) < 10 * count
    assert sum(undecided.count for undecided in framer.state.undecided.values()) == count


@pytest.mark.parametrize(("role", "heads"), [(REQUEST, REQUEST_HEADS), (RESPONSE, RESPONSE_HEADS)])
def test_tiny_pieces_after_a_gap(role: int, heads: bytes) -> None:
    """The next true frames are found, behind all of them."""
    stream = Stream()
    stream.say(*hello(), *heartbeats(1, 3))
    stream.feed((PieceKind.GAP, role, 100))
    data = (heads * (COUNT // len(heads) + 1))[:COUNT]
    pieces = single_bytes(data, [role], stream.offsets[role])
    assert calls(lambda: stream.framer.feed(pieces)) < MOST_CALLS
    stream.offsets[role] += COUNT
    after = heartbeats(5, 40) if role == REQUEST else []
    frames = of(stream.say(*after), role)
    stream.finish()
    if role == REQUEST:
        assert {row.kind for row in frames} == {FrameKind.LOST, FrameKind.FRAME}
        assert sum(row.kind == FrameKind.FRAME for row in frames) == len(after)


def test_tiny_pieces_with_bytes_missing_between_them() -> None:
    """As a snap length leaves them: each may begin a frame, and none does."""
    count = 6_000
    framer = Framer([Connection(0, 0, endpoints(0), 0, 0, (None, None), False)])
    head = hello()[0][1][:20]
    kinds, lengths = (
        np.tile(np.array([PieceKind.BYTES, PieceKind.GAP], np.uint8), count),
        np.tile(np.array([20, 7]), count),
    )
    order = np.arange(2 * count)
    offsets, starts = np.cumsum(lengths) - lengths, np.zeros(2 * count, np.int64)
    pieces = Pieces(
        np.frombuffer(head, np.uint8), kinds, np.zeros(2 * count, np.int32), offsets, starts, lengths, order, order
    )
    assert calls(lambda: framer.feed(pieces)) < MOST_CALLS
    earned = 2 * PIECE_EARNS * count + 20 * count // BYTES_EARN
    assert framer.state.credit.spent <= FIRST_CREDIT + RESERVE + earned + 20 * count


def test_frames_within_frames_are_judged_for_what_they_earn() -> None:
    """Places without end that may be a frame, in large pieces; none of them is one."""
    framer = Framer([Connection(0, 0, endpoints(0), 0, 0, (None, None), False)])
    data = empty_responses(200_000)
    size, step = len(data), 1_400
    starts = np.arange(0, size, step)
    lengths = np.minimum(step, size - starts)
    kinds, streams = np.full(len(starts), PieceKind.BYTES, np.uint8), np.zeros(len(starts), np.int32)
    order = np.arange(len(starts))
    framer.feed(Pieces(np.frombuffer(data, np.uint8), kinds, streams, starts, starts, lengths, order, order))
    framer.finish()
    earned = PIECE_EARNS * len(starts) + size // BYTES_EARN
    assert FIRST_CREDIT < framer.state.credit.spent <= FIRST_CREDIT + RESERVE + earned + size
