"""A batch of pieces before and after the framing kernel: what the survey says is what its columns say."""

from random import Random

import numpy as np

from kafkascope.capture.base.flow import (
    Connection,
    PieceKind,
    Pieces,
)
from kafkascope.capture.frames.framing import Framer
from kafkascope.capture.frames.survey import survey
from tests.support.flows import endpoints
from tests.support.framing import hello, rows
from tests.support.traffic import REQUEST


def random_pieces(random: Random) -> Pieces:
    """Some bytes lie in `waited`; columns are of types that the kernel does not know, now and then."""
    count = random.randint(1, 30)
    data, waited = np.zeros(random.randint(0, 50), np.uint8), np.zeros(random.randint(0, 50), np.uint8)
    wide = random.random() < 0.3
    return Pieces(
        data,
        np.array(
            [random.choice((PieceKind.BYTES, PieceKind.BYTES, PieceKind.GAP, PieceKind.OPEN)) for _ in range(count)],
            np.int64 if wide else np.uint8,
        ),
        np.array([random.randrange(40) for _ in range(count)], np.int64 if wide else np.int32),
        np.arange(2 * count)[::2] if wide else np.arange(count),
        np.array([random.randint(0, len(data) + len(waited)) for _ in range(count)], np.int64),
        np.array([random.randrange(100) for _ in range(count)], np.int64),
        np.arange(count),
        np.arange(count),
        waited=waited,
    )


def test_a_survey_says_what_the_columns_say() -> None:
    random = Random(1)
    for _ in range(500):
        pieces = random_pieces(random)
        piece, streams, size, begun, links = survey(pieces)
        assert (piece.start == pieces.start).all()
        assert piece.data.tobytes() == pieces.data.tobytes() and piece.waited.tobytes() == pieces.waited.tobytes()
        assert (piece.kind == pieces.kind).all() and (piece.stream == pieces.stream).all()
        assert (piece.offset == pieces.offset).all() and piece.offset.flags.carray
        assert [column.dtype for column in piece] == [np.uint8, np.int32, *[np.int64] * 5, np.uint8, np.uint8]
        assert streams == 2 * (pieces.stream.max() // 2 + 1)
        assert size == pieces.length[pieces.kind == PieceKind.BYTES].sum()
        assert set(begun) == set((pieces.stream[pieces.kind == PieceKind.OPEN] // 2).tolist())
        assert len(links) == len(pieces.kind)


def test_one_number_serves_many_connections_in_one_batch() -> None:
    """More of them than the kernel has room to remember."""
    count = 500
    talk = [
        (PieceKind.RENEWED, 0, b""),
        (PieceKind.OPEN, 0, b""),
        (PieceKind.OPEN, 1, b""),
        *((PieceKind.BYTES, *message) for message in hello()),
    ] * count
    sizes = np.array([len(data) for _, _, data in talk])
    connection = Connection(0, 0, endpoints(0), 0, 0, (None, None), True, opener=REQUEST)
    framer = Framer([connection])
    frames = framer.feed(
        Pieces(
            np.frombuffer(b"".join(data for _, _, data in talk), np.uint8),
            np.array([kind for kind, _, _ in talk], np.uint8),
            np.array([direction for _, direction, _ in talk], np.int32),
            np.zeros(len(talk), np.int64),
            np.cumsum(sizes) - sizes,
            sizes,
            np.arange(len(talk)),
            np.arange(len(talk)),
        )
    )
    assert set(frames.verdicts) == {(0, "kafka", REQUEST)}
    # Whoever owns the connection writes to it.
    assert (connection.protocol, connection.client) == ("unknown", None)
    assert {row.body for row in rows([frames])} == {data[4:] for _, data in hello()}
