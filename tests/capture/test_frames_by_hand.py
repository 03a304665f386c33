"""Frames out of streams made by hand: gaps, tokens, keys and versions that nobody knows, and what is bounded."""

from random import Random

import numpy as np
import pytest

from kafkascope import limits
from kafkascope.capture.base.flow import (
    Connection,
    FrameKind,
    PieceKind,
    Pieces,
)
from kafkascope.capture.frames.framing import Framer
from tests.support.flows import Faults, endpoints
from tests.support.framing import PieceEntry, Row, Stream, heartbeats, hello, kinds, of, read_messages, rows
from tests.support.traffic import (
    REQUEST,
    RESPONSE,
    framed,
    produce,
    request,
    response,
)


def test_frame_has_the_times_of_its_first_and_last_byte() -> None:
    stream = Stream()
    stream.say(*hello())
    first, second = request("Heartbeat", 4, 1), request("Heartbeat", 4, 2)
    frames = stream.say((REQUEST, first[:3]), (REQUEST, first[3:9]), (REQUEST, first[9:] + second))
    assert [(row.first_ns, row.time_ns, row.packet) for row in frames] == [(0, 2, 0), (2, 2, 2)]


def test_gap_inside_a_frame_costs_that_frame_alone() -> None:
    """Its length is known, so the next one is found without a search; what comes before the gap has its header."""
    stream = Stream()
    stream.say(*hello())
    long, after = produce(1, 5_000), request("Heartbeat", 4, 2)
    stream.feed(
        (PieceKind.BYTES, REQUEST, long[:2_000]),
        (PieceKind.GAP, REQUEST, 1_000),
        (PieceKind.BYTES, REQUEST, long[3_000:] + after),
    )
    frames = of(stream.rows, REQUEST)
    assert [row.kind for row in frames] == [FrameKind.FRAME] * 3
    assert (frames[1].body, frames[1].lost) == (long[4:2_000], len(long) - 2_000)
    assert frames[2].body == after[4:]


def test_gap_before_the_end_of_a_header_loses_the_frame() -> None:
    stream = Stream()
    stream.say(*hello())
    first, after = request("Heartbeat", 4, 1), request("Heartbeat", 4, 2)
    stream.feed(
        (PieceKind.BYTES, REQUEST, first[:11]),
        (PieceKind.GAP, REQUEST, len(first) - 11),
        (PieceKind.BYTES, REQUEST, after),
    )
    frames = of(stream.rows, REQUEST)
    assert [(row.kind, row.lost) for row in frames] == [
        (FrameKind.FRAME, 0),
        (FrameKind.LOST, len(first)),
        (FrameKind.FRAME, 0),
    ]


def test_after_a_gap_the_next_true_frame_is_found_and_the_loss_counted() -> None:
    stream = Stream()
    stream.say(*hello())
    messages = [data for _, data in heartbeats(1, 6)]
    whole = b"".join(messages)
    cut = len(messages[0]) // 2
    until = len(messages[0]) + len(messages[1]) + 7
    stream.feed(
        (PieceKind.BYTES, REQUEST, whole[:cut]),
        (PieceKind.GAP, REQUEST, until - cut),
        (PieceKind.BYTES, REQUEST, whole[until:]),
    )
    frames = of(stream.finish(), REQUEST)
    assert [row.kind for row in frames] == [
        FrameKind.FRAME,
        FrameKind.FRAME,
        FrameKind.LOST,
        FrameKind.FRAME,
        FrameKind.FRAME,
        FrameKind.FRAME,
    ]
    assert (frames[1].body, frames[1].lost) == (messages[0][4:cut], len(messages[0]) - cut)
    assert frames[2].lost == sum(len(message) for message in messages[1:3])
    assert [row.body for row in frames[3:]] == [message[4:] for message in messages[3:]]


def test_responses_are_found_again_by_what_was_asked() -> None:
    stream = Stream()
    stream.say(*hello(), *heartbeats(1, 4))
    answers = [response("Heartbeat", 4, identity) for identity in range(1, 5)]
    stream.feed((PieceKind.BYTES, RESPONSE, answers[0][:5]), (PieceKind.GAP, RESPONSE, len(answers[0])))
    stream.say((RESPONSE, answers[1][5:] + answers[2] + answers[3]))
    frames = of(stream.finish(), RESPONSE)
    assert [row.kind for row in frames] == [FrameKind.FRAME, FrameKind.LOST, FrameKind.FRAME, FrameKind.FRAME]
    assert [row.body for row in frames[2:]] == [answers[2][4:], answers[3][4:]]
    assert frames[1].lost == len(answers[0]) + len(answers[1])


def test_one_header_alone_does_not_end_a_search() -> None:
    """A heartbeat in the middle of a record, as a topic of recorded traffic would have it."""
    stream = Stream()
    stream.say(*hello())
    inside = produce(1, 400, b"\x5a" * 90 + request("Heartbeat", 4, 77) + b"\x5a" * 300)
    after = [data for _, data in heartbeats(2, 2)]
    # The packet ends with it, so that nothing speaks against it yet.
    end = inside.index(request("Heartbeat", 4, 77)) + len(request("Heartbeat", 4, 77))
    stream.feed((PieceKind.GAP, REQUEST, 50), (PieceKind.BYTES, REQUEST, inside[50:end]))
    stream.say((REQUEST, inside[end:] + after[0] + after[1]))
    frames = of(stream.finish(), REQUEST)
    assert [row.kind for row in frames] == [FrameKind.FRAME, FrameKind.LOST, FrameKind.FRAME, FrameKind.FRAME]
    assert frames[1].lost == len(inside)


def test_length_that_is_none_ends_trust_until_frames_agree_again() -> None:
    stream = Stream()
    stream.say(*hello())
    after = [data for _, data in heartbeats(1, 3)]
    for nonsense in (b"\xff\xff\xff\xfe", (limits.MAX_FRAME_BYTES + 1).to_bytes(4, "big")):
        start = stream.offsets[REQUEST]
        frames = of(stream.say((REQUEST, nonsense + b"garbage" + b"".join(after))), REQUEST)
        assert [(row.kind, row.offset, row.lost) for row in frames[:1]] == [(FrameKind.LOST, start, 11)]
        assert [row.body for row in frames[1:]] == [message[4:] for message in after]


def test_largest_length_is_trusted() -> None:
    stream = Stream()
    stream.say(*hello())
    assert stream.say((REQUEST, limits.MAX_FRAME_BYTES.to_bytes(4, "big") + b"x" * 100)) == []
    assert [(row.kind, row.lost) for row in of(stream.finish(), REQUEST)[1:]] == [(FrameKind.LOST, 104)]


def test_start_in_the_middle_of_a_frame() -> None:
    stream = Stream(opener=None)
    messages = [data for _, data in heartbeats(1, 4)]
    stream.say((REQUEST, messages[0][9:] + b"".join(messages[1:])))
    frames = of(stream.finish(), REQUEST)
    assert [row.kind for row in frames] == [FrameKind.LOST, FrameKind.FRAME, FrameKind.FRAME, FrameKind.FRAME]
    assert frames[0].lost == len(messages[0]) - 9
    assert (stream.connection.protocol, stream.connection.client) == ("kafka", REQUEST)


def test_unknown_version_before_frames_that_agree_is_kept() -> None:
    """A client newer than the catalog asks ApiVersions too new and falls back."""
    stream = Stream()
    newer = bytearray(request("ApiVersions", 3, 0))
    newer[7] = 40
    frames = stream.say((REQUEST, bytes(newer)), (REQUEST, request("ApiVersions", 0, 1)), *heartbeats(2, 1))
    assert [row.body[:4].hex() for row in frames] == ["00120028", "00120000", "000c0004"]


def test_key_that_does_not_exist_is_a_frame_like_others() -> None:
    stream = Stream()
    stream.say(*hello())
    odd = framed(bytes.fromhex("7fff 0063 00000001 fffe"))  # API key 32767, version 99, client id of length -2
    frames = stream.say((REQUEST, odd), *heartbeats(2, 1))
    assert [row.body for row in frames] == [odd[4:], request("Heartbeat", 4, 2)[4:]]


def test_sasl_tokens_have_no_header() -> None:
    """protocol notes 6 and 7: raw tokens follow on SaslHandshake v0, and the answer to a PLAIN one is an empty
    frame."""
    stream = Stream()
    frames = stream.say(
        *hello(),
        (REQUEST, request("SaslHandshake", 0, 1)), (RESPONSE, response("SaslHandshake", 0, 1)),
        (REQUEST, framed(b"\0alice\0alice-secret")), (RESPONSE, framed(b"")),
        (REQUEST, request("Metadata", 12, 2)), (RESPONSE, response("Metadata", 12, 2)),
    )  # fmt: skip
    assert kinds(frames, REQUEST) == [FrameKind.FRAME, FrameKind.FRAME, FrameKind.TOKEN, FrameKind.FRAME]
    assert kinds(frames, RESPONSE) == [FrameKind.FRAME, FrameKind.FRAME, FrameKind.TOKEN, FrameKind.FRAME]


def test_sasl_tokens_of_several_rounds() -> None:
    stream = Stream()
    frames = stream.say(
        (REQUEST, request("SaslHandshake", 0, 1)), (RESPONSE, response("SaslHandshake", 0, 1)),
        (REQUEST, framed(b"n,,n=alice,r=fyko+d2lbbFgONRv9qkxdawL")), (RESPONSE, framed(b"r=fyko,s=QSXCR,i=4096")),
        (REQUEST, framed(b"c=biws,r=fyko,p=v0X8v3Bz2T0CJGbJQyF0X")), (RESPONSE, framed(b"v=rmF9pqV8S7suAoZWja4dJR")),
        (REQUEST, request("Metadata", 12, 2)), (RESPONSE, response("Metadata", 12, 2)),
    )  # fmt: skip
    assert kinds(frames, REQUEST) == [FrameKind.FRAME, FrameKind.TOKEN, FrameKind.TOKEN, FrameKind.FRAME]
    assert kinds(frames, RESPONSE) == [FrameKind.FRAME, FrameKind.TOKEN, FrameKind.TOKEN, FrameKind.FRAME]


@pytest.mark.parametrize("secret", [b"\0u\0hunter2", b"\0u\0\x01hunter2-hunter2", b"n,,n=alice,r=fyko+d2lbbFgONRv9qk"])
def test_what_follows_a_damaged_request_may_be_a_password(secret: bytes) -> None:
    """The snap length cut the handshake: bytes of the token would be shown as key, version and correlation id."""
    stream = Stream()
    cut = request("SaslHandshake", 0, 1)
    stream.say(*hello(), (REQUEST, cut[:12]))
    stream.feed((PieceKind.GAP, REQUEST, len(cut) - 12))
    frames = stream.say((REQUEST, framed(secret)), (REQUEST, request("Metadata", 12, 2)))
    assert kinds(frames, REQUEST) == [FrameKind.TOKEN, FrameKind.FRAME]


def test_handshake_whose_answer_is_lost_is_kafka_by_what_follows_its_tokens() -> None:
    stream = Stream()
    requests = [request("SaslHandshake", 0, 1), framed(b"\0alice\0alice-secret")]
    requests += [request("ApiVersions", 0, 2), request("Metadata", 12, 3)]
    stream.feed((PieceKind.GAP, RESPONSE, 36))
    frames = stream.say(
        *((REQUEST, message) for message in requests), (RESPONSE, framed(b"")), (RESPONSE, response("Metadata", 12, 3))
    )
    assert kinds(frames, REQUEST) == [FrameKind.FRAME, FrameKind.TOKEN, FrameKind.FRAME, FrameKind.FRAME]


def test_empty_answer_of_a_token_is_passed_on_the_way_to_one_that_fits() -> None:
    stream = Stream()
    stream.feed((PieceKind.GAP, REQUEST, 37))
    stream.say(
        (REQUEST, framed(b"\0alice\0alice-secret")),
        (RESPONSE, response("SaslHandshake", 0, 1)),
        (RESPONSE, framed(b"")),
        (REQUEST, request("ApiVersions", 0, 2)),
        (RESPONSE, response("ApiVersions", 0, 2)),
    )
    assert (stream.connection.protocol, kinds(stream.finish(), REQUEST)[-1:]) == ("kafka", [FrameKind.FRAME])


def test_answer_behind_lost_tokens_is_a_frame() -> None:
    """Neither its request nor an id that says something is there; but requests have gone on behind the tokens."""
    for answer, kind in (
        (response("Metadata", 12, 2_000_000_001), FrameKind.FRAME),
        (framed(b"v=rmF9pqV8S7suAoZWja4dJR"), FrameKind.TOKEN),
    ):
        stream = Stream()
        stream.say(
            *hello(),
            (REQUEST, request("SaslHandshake", 0, 1)), (RESPONSE, response("SaslHandshake", 0, 1)),
            (REQUEST, framed(b"n,,n=alice,r=fyko+d2lbbFgONRv9qkxdawL")), (RESPONSE, framed(b"r=fyko,s=QSXCR,i=4096")),
            (REQUEST, request("Metadata", 12, 2_000_000_100)),
        )  # fmt: skip
        assert kinds(stream.say((RESPONSE, answer)), RESPONSE) == [kind]


def test_sasl_handshake_of_version_1_is_followed_by_frames() -> None:
    stream = Stream()
    frames = stream.say(
        (REQUEST, request("SaslHandshake", 1, 1)), (RESPONSE, response("SaslHandshake", 1, 1)),
        (REQUEST, request("SaslAuthenticate", 2, 2)), (RESPONSE, response("SaslAuthenticate", 2, 2)),
    )  # fmt: skip
    assert kinds(frames, REQUEST) == kinds(frames, RESPONSE) == [FrameKind.FRAME, FrameKind.FRAME]


def test_zeros_are_not_frames_without_end() -> None:
    stream = Stream()
    stream.say(*hello())
    stream.say((RESPONSE, bytes(4_000_000)))
    frames = of(stream.finish(), RESPONSE)[1:]
    assert len(frames) < 40
    assert frames[-1].end == stream.offsets[RESPONSE]


def test_unfinished_frames_are_bounded() -> None:
    """Two connections with a frame of 100 MB each that never ends: the second is given up, and told."""
    connections = [Connection(n, 0, endpoints(0), 0, 0, (None, None), True, opener=0) for n in range(2)]
    framer = Framer(connections)
    size = limits.MAX_FRAME_BYTES

    def feed(number: int, kind: int, offset: int, data: bytes) -> list[Row]:
        offsets = np.array([offset], np.int64)
        stream, zero = np.array([2 * number], np.int32), np.zeros(1, np.int64)
        length = np.array([len(data)], np.int64)
        kind_ = np.array([kind], np.uint8)
        return rows(
            [framer.feed(Pieces(np.frombuffer(data, np.uint8), kind_, stream, offsets, zero, length, zero, zero))]
        )

    opening = b"".join(data for _, data in heartbeats(1, 2)) + size.to_bytes(4, "big")
    part = bytes(1_000_000)
    for number in range(2):
        feed(number, PieceKind.OPEN, 0, b"")
        feed(number, PieceKind.BYTES, 0, opening)
        for turn in range(104):
            feed(number, PieceKind.BYTES, len(opening) + turn * len(part), part)
    assert framer.state.tables.pool.nbytes <= limits.MAX_UNFINISHED_BYTES
    rest = bytes(size - 104 * len(part))
    ends = [feed(number, PieceKind.BYTES, len(opening) + 104 * len(part), rest) for number in range(2)]
    assert [row.kind for frames in ends for row in frames] == [FrameKind.FRAME, FrameKind.LOST]
    assert ends[1][0].lost == 4 + size


def test_search_is_bounded() -> None:
    """Nothing to be found in ten times what a search may hold."""
    stream = Stream()
    stream.say(*hello())
    stream.feed((PieceKind.GAP, REQUEST, 100))
    noise = Random(3).randbytes(1_000_000)
    for _ in range(80):
        stream.say((REQUEST, noise))
        assert stream.framer.state.kept_bytes < 2 * limits.MAX_SEARCHED_BYTES
    after = [data for _, data in heartbeats(5, 2)]
    frames = of(stream.say((REQUEST, b"".join(after))), REQUEST)
    assert [(row.kind, row.lost) for row in frames] == [
        (FrameKind.LOST, 100 + 80_000_000),
        (FrameKind.FRAME, 0),
        (FrameKind.FRAME, 0),
    ]


def test_undecided_connections_are_bounded() -> None:
    """Connections that nobody can name, each with some bytes: the oldest are left alone."""
    number = 40_000
    connections = [Connection(n, 0, endpoints(0), 0, 0, (None, None), False) for n in range(number)]
    framer = Framer(connections)
    count = np.arange(number)
    pieces = Pieces(
        np.frombuffer(Random(1).randbytes(100) * number, np.uint8), np.full(number, PieceKind.BYTES, np.uint8),
        (2 * count).astype(np.int32), np.zeros(number, np.int64), 100 * count, np.full(number, 100, np.int64), count,
        count,
    )  # fmt: skip
    frames = framer.feed(pieces)
    assert len(frames.kind) == 0
    assert framer.state.kept_bytes <= limits.MAX_SEARCHED_TOTAL_BYTES
    assert 0 < len(framer.state.undecided) < number
    assert {problem.kind for problem in frames.problems} == {"undecided"}


def test_number_that_is_used_again_is_another_connection() -> None:
    """Whatever is known of the one that was forgotten."""
    http: list[PieceEntry] = [(PieceKind.BYTES, REQUEST, b"GET / HTTP/1.1\r\n")]
    half: list[PieceEntry] = [(PieceKind.BYTES, REQUEST, heartbeats(1, 1)[0][1])]
    middle: list[PieceEntry] = [(PieceKind.GAP, REQUEST, 10), *half]
    closed: list[PieceEntry] = [(PieceKind.CLOSE, REQUEST, b""), (PieceKind.CLOSE, RESPONSE, b"")]
    talk = [*hello(), *heartbeats(1, 2)]
    plain = Stream()
    plain.say(*talk)
    for before in (http, half, middle, closed):
        for cut in (False, True):
            stream = Stream()
            stream.feed(*before)
            assert stream.rows == []
            stream.offsets = [0, 0]
            stream.feed(
                (PieceKind.RENEWED, REQUEST, b""), (PieceKind.OPEN, REQUEST, b""), (PieceKind.OPEN, RESPONSE, b"")
            )
            for message in talk if cut else ():
                stream.say(message)
            if not cut:
                stream.say(*talk)
            assert [row[:5] + row[8:] for row in stream.rows] == [row[:5] + row[8:] for row in plain.rows]
            assert stream.framer.state.kept_bytes == 0


def test_ended_connections_leave_nothing_behind() -> None:
    """Short ones, one after the other: what is remembered of one serves the next."""
    count = 3_000
    connections = [Connection(n, 0, endpoints(0), 0, 0, (None, None), True, opener=0) for n in range(count)]
    framer = Framer(connections)
    talk = [
        (PieceKind.OPEN, 0, b""),
        (PieceKind.OPEN, 1, b""),
        *((PieceKind.BYTES, *message) for message in hello()),
        (PieceKind.CLOSE, 0, b""),
        (PieceKind.CLOSE, 1, b""),
    ]
    data = b"".join(what for _, _, what in talk)
    sizes = np.tile([len(what) for _, _, what in talk], count)
    length = len(talk)
    number = np.repeat(np.arange(count), length)
    frames = framer.feed(
        Pieces(
            np.frombuffer(data * count, np.uint8),
            np.tile(np.array([kind for kind, _, _ in talk], np.uint8), count),
            (2 * number + np.tile([direction for _, direction, _ in talk], count)).astype(np.int32),
            np.where(np.tile([kind == PieceKind.CLOSE for kind, _, _ in talk], count), 1_000, 0),
            np.cumsum(sizes) - sizes,
            sizes,
            number,
            number,
        )
    )
    assert frames.kind.tolist() == [FrameKind.FRAME, FrameKind.FRAME, FrameKind.ENDED, FrameKind.ENDED] * count
    assert frames.connection.tolist() == np.repeat(np.arange(count), 4).tolist()
    assert sorted(set(frames.verdicts)) == [(number, "kafka", 0) for number in range(count)]
    assert len(framer.state.tables.slots) < 100


def test_end_of_the_stream_is_told() -> None:
    connection, frames = read_messages([*hello(), *heartbeats(1, 3)])
    assert connection.protocol == "kafka"
    assert [kinds(frames, role)[-1] for role in (REQUEST, RESPONSE)] == [FrameKind.ENDED, FrameKind.ENDED]
    reset = read_messages([*hello(), *heartbeats(1, 3)], Faults(reset=True))[1]
    assert [kinds(reset, role)[-1] for role in (REQUEST, RESPONSE)] == [FrameKind.ENDED, FrameKind.ENDED]


def test_frame_cut_by_the_end_is_lost() -> None:
    cut = request("Heartbeat", 4, 3)[:-5]
    for faults in (Faults(), Faults(reset=True), Faults(no_end=True)):
        frames = of(read_messages([*hello(), *heartbeats(1, 2), (REQUEST, cut)], faults)[1], REQUEST)
        assert [(row.kind, row.lost) for row in frames if row.kind != FrameKind.ENDED][-1] == (FrameKind.LOST, len(cut))
