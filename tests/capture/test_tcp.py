"""Streams out of segments: what the recording shows of every byte, whatever happened to the packets on the way."""

import os
from collections import defaultdict
from collections.abc import Iterable
from random import Random

import pytest

from kafkascope.capture.flow import BYTES, GAP, Pieces
from kafkascope.capture.tcp import Reassembler
from tests.support.flows import Recording, random_conversation, random_faults, record

RECORDINGS = 10_000 if os.environ.get("KAFKASCOPE_SOAK") else 2_000
CHUNKS = 8
Shown = dict[int, list[int | None]]


def shown(pieces: Iterable[Pieces]) -> tuple[Shown, dict[int, list[int]]]:
    """Each stream's bytes, None in gaps, and the kinds of rows that say something else. Offsets leave nothing out."""
    streams: Shown = defaultdict(list)
    marks: dict[int, list[int]] = defaultdict(list)
    for batch in pieces:
        for row, kind in enumerate(batch.kind):
            stream = int(batch.stream[row])
            assert batch.offset[row] == len(streams[stream])
            length = int(batch.length[row])
            if kind == BYTES:
                start = int(batch.start[row])
                assert length > 0
                streams[stream] += batch.data[start : start + length].tolist()
            elif kind == GAP:
                assert length > 0
                streams[stream] += [None] * length
            else:
                assert length == 0
                marks[stream].append(int(kind))
    return streams, marks


def run(recording: Recording, size: int) -> tuple[Reassembler, list[Pieces]]:
    reassembler = Reassembler(recording.flows)
    pieces = [reassembler.feed(batch) for batch in recording.batches(size)]
    return reassembler, [*pieces, reassembler.finish()]


def rows(pieces: Iterable[Pieces]) -> list[tuple[object, ...]]:
    return [
        (
            int(p.kind[i]), int(p.stream[i]), int(p.offset[i]), int(p.length[i]), int(p.time_ns[i]), int(p.packet[i]),
            p.data[p.start[i] : p.start[i] + p.length[i]].tobytes() if p.kind[i] == BYTES else b"",
        )
        for p in pieces
        for i in range(len(p.kind))
    ]  # fmt: skip


def random_recording(seed: int) -> Recording:
    random = Random(seed)
    conversations = [random_conversation(random) for _ in range(random.choice((1, 1, 1, 2, 3)))]
    return record(random, conversations, random_faults(random, len(conversations)))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_streams_are_what_the_recording_shows(chunk: int) -> None:
    for seed in range(chunk, RECORDINGS, CHUNKS):
        recording = random_recording(seed)
        reassembler, pieces = run(recording, max(1, len(recording.packets)))
        streams, _ = shown(pieces)
        seen = [truth for truth in recording.truths if truth[0].shown or truth[1].shown]
        connections = [c for c in reassembler.connections if sum(c.bytes_seen) + sum(c.gap_bytes)]
        assert len(connections) == len(seen), f"seed {seed}"
        for connection, truths in zip(connections, seen, strict=True):
            for direction, truth in enumerate(truths):
                assert streams[2 * connection.number + direction] == truth.shown, f"seed {seed}"
                assert connection.bytes_seen[direction] == sum(byte is not None for byte in truth.shown), f"seed {seed}"
                assert connection.gap_bytes[direction] == truth.shown.count(None), f"seed {seed}"
            if not sum(connection.gap_bytes) and connection.opened:
                again = connection.retransmitted_bytes + connection.duplicated_bytes
                single = sum(truth.single for truth in truths)
                assert 0 <= sum(truth.repeated for truth in truths) - again <= single, f"seed {seed}"
                conflicts = sum(truth.conflicts for truth in truths)
                assert 0 <= conflicts - connection.conflict_bytes <= single, f"seed {seed}"
