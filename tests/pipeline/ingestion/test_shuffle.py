"""Segments on their way to the tasks of their connections: packed, and bounded in memory whatever is in a file."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kafkascope import limits
from kafkascope.capture.resume.run import Part
from kafkascope.capture.resume.stretch import ALL_PACKETS
from kafkascope.pipeline.ingestion.shuffle import ORDER, Routes, SegmentsReading, by_task, note_row, segment_rows
from tests.support.packet_build import ipv4, tcp

RAW_IP = 101
FLOWS = 220_000
SYN = 2


def flood(path: Path) -> None:
    """The first packet of so many connections, from one address after the other."""
    packet = ipv4("11.0.0.0", "10.0.0.2", tcp(7, 9092, flags=SYN))
    record = np.zeros((FLOWS, 16 + len(packet)), np.uint8)
    numbers = np.arange(FLOWS)
    record[:, 0:4] = (1_700_000_000 >> np.array([0, 8, 16, 24])) & 255
    record[:, 8] = record[:, 12] = len(packet)
    record[:, 16:] = np.frombuffer(packet, np.uint8)
    record[:, 16 + 13 : 16 + 16] = (numbers[:, None] >> np.array([16, 8, 0])) & 255
    header = np.array([0xA1B2C3D4, 2 | 4 << 16, 0, 0, 65_535, RAW_IP], "<u4")
    path.write_bytes(header.tobytes() + record.tobytes())


def test_a_flood_of_connections_is_bounded_on_both_sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkascope.pipeline.ingestion.shuffle.CHUNK_BYTES", 1 << 20)
    path = tmp_path / "flood.pcap"
    flood(path)
    rows = list(segment_rows(str(path), 0, 0, Routes(lambda _: 0, [[(0, ALL_PACKETS)]])))
    chunks = [batch for batch in rows if batch.column("segments").null_count == 0]
    most = max(len(pa.ipc.open_stream(batch.column("segments")[0].as_buffer()).read_all()) for batch in chunks)
    assert len(chunks) > 3
    reading = SegmentsReading(iter(rows), [str(path)], (), Part(last=False))
    assert list(reading.batches()) == []
    assert reading.account.packets == FLOWS
    assert sum(count for count, _ in reading.account.protocols().values()) == FLOWS
    capture = reading._capture
    assert capture is not None
    bound = limits.MAX_UNUSED_FLOWS + limits.MAX_OTHER_CONNECTIONS + 2 * most
    assert len(capture.flows.ends) <= bound < FLOWS
    assert len(reading._numbers) <= bound


def test_tasks_come_apart_with_their_notes_first(tmp_path: Path) -> None:
    path = tmp_path / "some.pcap"
    flood(path)
    path.write_bytes(path.read_bytes()[: 24 + 100 * 56])
    routes = Routes(lambda ends: ends.address_b[-1] % 3, [[(task, ALL_PACKETS)] for task in range(3)])
    rows = [*segment_rows(str(path), 0, 0, routes), note_row(1, -1, "")]
    table = pa.Table.from_batches(rows).sort_by([(name, "ascending") for name in ORDER]).combine_chunks()
    received = {task: pa.Table.from_batches(list(some)) for task, some in by_task(iter(table.to_batches()))}
    assert {task: some.column("chunk").to_pylist() for task, some in received.items()} == {
        0: [-1, 0],
        1: [-1, 0],
        2: [0],
    }
    packed = [
        packed_rows for some in received.values() for packed_rows in some.column("segments") if packed_rows.is_valid
    ]
    packets = [
        pa.ipc.open_stream(packed_row.as_buffer()).read_all().column("packet").to_pylist() for packed_row in packed
    ]
    assert packets == [list(range(first, 100, 3)) for first in range(3)]
