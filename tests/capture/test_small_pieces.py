"""Small pieces of a stream are looked at together; frames are the same as those of pieces that come one by one."""

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from kafkascope.capture.base.flow import (
    Connection,
    PieceKind,
    Pieces,
)
from kafkascope.capture.frames.framing import Framer
from tests.support.flows import Message, endpoints
from tests.support.framing import Row, apply_verdicts, heartbeats, hello, rows
from tests.support.traffic import REQUEST, RESPONSE, response

SEED = 40
CASES = 150
Piece = tuple[int, int, int, bytes | int]  # kind, direction, offset, bytes or how many are missing


def messages(random: Random) -> list[Message]:
    """Several requests before their responses."""
    made = hello() if random.random() < 0.5 else []
    for turn in range(random.randint(1, 4)):
        first, count = 10 * turn + 1, random.randint(1, 5)
        made += heartbeats(first, count)
        made += [(RESPONSE, response("Heartbeat", 4, first + number)) for number in range(count)]
    return made


def pieces(random: Random, *, opened: bool, losses: float) -> list[Piece]:
    """The messages in pieces of up to `most` bytes, each way from the middle on where its start is missing."""
    offsets = [0, 0]
    made: list[Piece] = [(PieceKind.OPEN, way, 0, b"") for way in (REQUEST, RESPONSE)] if opened else []
    most = random.choice((3, 20, 60, 127, 128, 300))
    for way, data in messages(random):
        at = 0
        while at < len(data):
            part = data[at : at + random.randint(1, most)]
            lost = random.random() < losses
            made.append(
                (PieceKind.GAP, way, offsets[way], len(part)) if lost else (PieceKind.BYTES, way, offsets[way], part)
            )
            at += len(part)
            offsets[way] += len(part)
    return made + [(PieceKind.CLOSE, way, offsets[way], b"") for way in (REQUEST, RESPONSE)]


def framed_in(pieces_in: Sequence[Piece], ends: Sequence[int], *, opened: bool) -> tuple[str, list[Row]]:
    """What the connection is, and its frames; the pieces in batches that end where `ends` has it."""
    connection = Connection(0, 0, endpoints(0), 0, 0, (None, None), opened, opener=REQUEST if opened else None)
    framer = Framer([connection])
    frames: list[Row] = []
    for first, last in zip([0, *ends], [*ends, len(pieces_in)], strict=True):
        some = pieces_in[first:last]
        data = b"".join(what for *_, what in some if isinstance(what, bytes))
        sizes = np.array([len(what) if isinstance(what, bytes) else 0 for *_, what in some], np.int64)
        lengths = np.array([what if isinstance(what, int) else len(what) for *_, what in some], np.int64)
        numbers = np.arange(first, last, dtype=np.int64)
        batch = framer.feed(
            Pieces(
                np.frombuffer(data, np.uint8),
                np.array([kind for kind, *_ in some], np.uint8),
                np.array([way for _, way, *_ in some], np.int32),
                np.array([offset for _, _, offset, _ in some], np.int64),
                np.cumsum(sizes) - sizes,
                lengths,
                1_000 * numbers,
                numbers,
            )
        )
        frames += rows([apply_verdicts(batch, [connection])])
    frames += rows([apply_verdicts(framer.finish(), [connection])])
    return connection.protocol, sorted(frames, key=lambda row: (row.is_response, row.offset, row.kind))


@pytest.mark.parametrize("losses", [0.0, 0.03])
@pytest.mark.parametrize("opened", [True, False])
def test_frames_do_not_depend_on_what_comes_together(opened: bool, losses: float) -> None:
    """Bodies, offsets, and the times and packets in which frames begin and end."""
    for case in range(CASES):
        random = Random(f"{SEED} {case}")
        cut_pieces = pieces(random, opened=opened, losses=losses)
        single = framed_in(cut_pieces, range(1, len(cut_pieces)), opened=opened)
        ends = sorted(random.sample(range(1, len(cut_pieces)), min(random.randint(0, 3), len(cut_pieces) - 1)))
        assert framed_in(cut_pieces, ends, opened=opened) == single, f"seed {SEED}, case {case}, batches end at {ends}"
        if not losses:
            assert single[0] == "kafka", f"seed {SEED}, case {case}"
