"""Frames out of streams: the true ones, all that can be known, and a count of what was lost."""

import os
from random import Random

import pytest

from kafkascope.capture.base.flow import (
    FrameKind,
)
from tests.support.flows import Faults, Recording, Truth, random_faults, record
from tests.support.framing import of, read
from tests.support.traffic import (
    REQUEST,
    RESPONSE,
    Conversation,
    SentFrame,
    conversation,
)

RECORDINGS = 10_000 if os.environ.get("KAFKASCOPE_SOAK") else 2_000
CHUNKS = 8


def kafka_recording(seed: int) -> tuple[Recording, list[Conversation], Faults]:
    random = Random(seed)
    conversations = [
        conversation(random, random.randint(2, 10), sasl=random.random() < 0.1)
        for _ in range(random.choice((1, 1, 1, 2)))
    ]
    faults = random_faults(random, len(conversations))
    # Copies with other bytes are no loss to be told from true ones; they are a matter of reassembly.
    faults = Faults(**{name: getattr(faults, name) for name in Faults.__slots__} | {"other_bytes": 0.0})
    return record(random, [talk.messages for talk in conversations], faults), conversations, faults


def whole_groups(frames: list[SentFrame], truth: Truth) -> list[list[SentFrame]]:
    """Frames whose every byte the recording shows, in groups without a missing byte between."""
    groups: list[list[SentFrame]] = [[]]
    for frame in frames:
        start, end = frame.offset - truth.base, frame.offset + 4 + len(frame.body) - truth.base
        if start >= 0 and end <= len(truth.shown) and None not in truth.shown[start:end]:
            groups[-1].append(frame)
        elif groups[-1]:
            groups.append([])
    return [group for group in groups if group]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_frames_are_true_and_nothing_is_left_out(chunk: int) -> None:
    """Every row is a frame that was sent or a count of what was lost; together they make up the stream, and where two
    requests lie whole behind each other they are found."""
    for seed in range(chunk, RECORDINGS, CHUNKS):
        recording, conversations, faults = kafka_recording(seed)
        connections, frames = read([recording.segments()], recording)
        for connection in connections:
            if connection.protocol != "kafka":
                assert connection.protocol == "unknown", f"seed {seed}"
                continue
            assert connection.client == REQUEST, f"seed {seed}"
            talk, truths = conversations[connection.number], recording.truths[connection.number]
            for role in (REQUEST, RESPONSE):
                mine = [row for row in of(frames, role) if row.connection == connection.number]
                base = truths[role].base
                sent = {frame.offset - base: frame for frame in talk.frames[role]}
                at = 0
                for row in mine:
                    assert row.offset == at, f"seed {seed}"
                    at = row.end
                    if row.kind in (FrameKind.FRAME, FrameKind.TOKEN):
                        body = sent[row.offset].body
                        assert row.body == body[: len(body) - row.lost], f"seed {seed}"
                        if not faults.lost_by_recorder and faults.snap_length is None and connection.opened:
                            assert (row.kind == FrameKind.TOKEN) == sent[row.offset].token, f"seed {seed}"
                assert at == len(truths[role].shown), f"seed {seed}"
                if role == REQUEST:
                    recognised = {row.offset + base for row in mine if row.kind in (FrameKind.FRAME, FrameKind.TOKEN)}
                    for group in whole_groups(talk.frames[role], truths[role]):
                        if len(group) > 1 and not any(frame.token for frame in group):
                            assert recognised.issuperset(frame.offset for frame in group), f"seed {seed}"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_nothing_lost_means_every_frame_found(chunk: int) -> None:
    """Late, repeated, overlapping and reordered packets cost nothing."""
    for seed in range(chunk, RECORDINGS // 4, CHUNKS):
        recording, conversations, faults = kafka_recording(seed)
        faults = Faults(
            **{name: getattr(faults, name) for name in Faults.__slots__}
            | {"lost_by_recorder": 0.0, "snap_length": None, "no_start": False, "one_direction": False}
        )
        random = Random(seed)
        recording = record(random, [talk.messages for talk in conversations], faults)
        connections, frames = read([recording.segments()], recording)
        assert [connection.protocol for connection in connections] == ["kafka"] * len(conversations), f"seed {seed}"
        for number, talk in enumerate(conversations):
            for role in (REQUEST, RESPONSE):
                own_frames = [
                    row for row in of(frames, role) if row.connection == number and row.kind != FrameKind.ENDED
                ]
                assert [row.body for row in own_frames] == [frame.body for frame in talk.frames[role]], f"seed {seed}"


def test_batches_of_any_size_give_the_same_frames() -> None:
    for seed in range(150 if os.environ.get("KAFKASCOPE_SOAK") else 40):
        recording, _, _ = kafka_recording(seed)
        whole = read([recording.segments()], recording)
        for size in (1, 2, 7, 50):
            assert read(recording.batches(size), recording) == whole, f"seed {seed}, {size} at a time"


PieceEntry = tuple[int, int, bytes | int]
"""Kind, direction, and bytes or how many are missing."""
