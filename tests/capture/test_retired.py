"""Connections that ended make room for new ones: what is read does not depend on how many are remembered."""

from dataclasses import replace
from io import BytesIO
from random import Random
from typing import Any

import pytest

from kafkascope.capture.base.flow import Connection
from kafkascope.capture.exchanges.exchange_columns import to_arrow
from kafkascope.capture.exchanges.exchanges import Ends
from kafkascope.capture.exchanges.identity import connection_hash
from kafkascope.capture.reader import Reading
from kafkascope.capture.resume.run import Part
from kafkascope.pipeline.ingestion.rows.connections import connection_rows
from tests.support.packet_build import Stamped, Talk, pcap
from tests.support.traffic import request, response

SECOND = 1_000_000_000
COUNT = 600
# A batch of packets is that large: some forty connections.
CHUNK = 40_000


def recording(seconds_apart: float) -> bytes:
    """Short connections that overlap, of few ports: with and without a response, cut off, reset, repeated late."""
    random = Random(7)
    packets: list[Stamped] = []
    for number in range(COUNT):
        start = 1_700_000_000 * SECOND + int(number * seconds_apart * SECOND)
        talk = Talk(
            client=("10.0.0.1", 40_000 + number % 150), sequences=[1_000 + 7_919 * number, 5_000 + 104_729 * number],
            time_ns=start, step_ns=random.randrange(1, 9) * 1_000_000,
        )  # fmt: skip
        talk.open().say(0, request("ApiVersions", 3, 1)).say(1, response("ApiVersions", 3, 1))
        talk.say(0, request("Metadata", 1, 2))
        if number % 5:
            talk.say(1, response("Metadata", 1, 2))
        if number % 11:
            talk.close()
        packets += talk.packets
        if number % 7 == 0:
            packets += [(stamp + 30 * SECOND, packet) for stamp, packet in talk.packets[3:5]]
    packets.sort(key=lambda packet: packet[0])
    return pcap(packets)


def read(data: bytes, carried: Any = (), *, last: bool = True) -> tuple[Any, Any, dict[str, tuple[int, int]], Reading]:
    """(exchanges, connections by their hash, protocols)"""
    gone: list[tuple[Connection, Ends]] = []
    part = Part(carried=carried, last=last, chunk_bytes=CHUNK, on_gone=lambda *ended: gone.append(ended))
    reading = Reading(BytesIO(data), names=True, part=part)
    # Held until the end, as a reader may: the names of a batch stay those of its connections.
    batches = list(reading.batches())
    exchanges = [row for batch in batches for row in to_arrow(batch).to_pylist()]
    left = [(ended, reading.ends[ended.number]) for ended in reading.account.connections]
    rows = {row["connection_id"]: row for row in connection_rows([*gone, *left]).to_pylist()}
    assert len(rows) == len(gone) + len(left)
    assert len({connection_hash(ended) for ended, _ in gone}) == len(gone)
    return exchanges, rows, reading.account.protocols(), reading


@pytest.mark.parametrize("seconds_apart", [1.0, 0.01], ids=["over an hour", "at once"])
def test_what_is_read_is_the_same_however_few_are_remembered(
    seconds_apart: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = recording(seconds_apart)
    *expected, whole = read(data)
    monkeypatch.setattr("kafkascope.capture.tcp.reassembly.MAX_OTHER_CONNECTIONS", 60)
    # Beyond it one is let go before a late retransmission of it can be excluded.
    monkeypatch.setattr("kafkascope.capture.tcp.reassembly.MAX_CONNECTIONS", 2 * COUNT if seconds_apart == 1 else 100)
    *actual, few = read(data)
    assert len(whole.account.connections) == COUNT
    assert len(few.account.connections) < COUNT * 2 // 3
    exchanges, connections, protocols = actual
    if seconds_apart == 1:
        assert actual == expected
        return
    # Repeated segments come 30 s after the end here, in whose time all others have come and gone.
    late = {row["connection_id"] for row in exchanges} - {row["connection_id"] for row in expected[0]}
    assert [row for row in exchanges if row["connection_id"] not in late] == expected[0]
    assert {name: row["client_bytes"] for name, row in expected[1].items()}.items() <= {
        name: row["client_bytes"] for name, row in connections.items()
    }.items()
    assert protocols["kafka"][0] >= expected[2]["kafka"][0]


def test_a_frame_that_waits_keeps_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that came after the end of the responses wait on: nobody else may answer them."""
    monkeypatch.setattr("kafkascope.capture.tcp.reassembly.MAX_OTHER_CONNECTIONS", 60)
    reading = Reading(BytesIO(recording(1.0)), part=Part(chunk_bytes=CHUNK))
    for batch in reading.batches():
        capture = reading._run._capture
        assert capture is not None
        for number in capture._pairer.waiting().tolist():
            assert capture._pairer.ends[number].client_address
        assert len(batch)


def test_runs_that_are_resumed_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a connection took the number of one that an earlier run left."""
    data = recording(1.0)
    expected = read(data)[0]
    monkeypatch.setattr("kafkascope.capture.tcp.reassembly.MAX_OTHER_CONNECTIONS", 60)
    header, rest = data[:24], data[24:]
    *_, first = read(header + rest[: _record_after(rest, len(rest) // 2)], last=False)
    assert first.carried
    carried = [replace(connection) for connection in first.carried]
    assert len({connection.number for connection in carried}) == len(carried)
    later = first.pending()
    pending = {row["exchange_id"] for batch in later for row in to_arrow(batch).to_pylist()}
    assert pending <= {row["exchange_id"] for row in expected}


def _record_after(records: bytes, least: int) -> int:
    at = 0
    while at < least:
        at += 16 + int.from_bytes(records[at + 8 : at + 12], "little")
    return at
