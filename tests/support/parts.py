"""A recording in one run, or in parts with nothing but JSON between them: files in, all that a run tells out, in a form
that two of them can be compared in."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from io import BytesIO
from random import Random
from typing import Any

from kafkascope.capture.base.flow import Connection
from kafkascope.capture.exchanges.exchange_columns import to_arrow
from kafkascope.capture.exchanges.messages import Messages
from kafkascope.capture.reader import Reading
from kafkascope.capture.resume.parse import parse_carried
from kafkascope.capture.resume.run import Part
from tests.support.flows import Packet, endpoints, random_faults, record
from tests.support.packet_build import ethernet, ipv4, pcap, tcp
from tests.support.traffic import conversation

Connections = dict[Any, tuple[Any, ...]]


class Named(BytesIO):
    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name


@dataclass(slots=True)
class ReadResult:
    """Exchanges by id, with their frames; connections by their ends and start; the bodies by message and exchange."""

    exchanges: dict[str, dict[str, Any]] = field(default_factory=dict)
    connections: Connections = field(default_factory=dict)
    bodies: dict[tuple[str, str, str], str] = field(default_factory=dict)
    carried_bytes: int = 0
    problems: list[str] = field(default_factory=list)


def pcap_records(data: bytes) -> tuple[bytes, list[bytes]]:
    """The header of a little-endian pcap, and its records."""
    at, records = 24, []
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 8)
        records.append(data[at : at + 16 + length])
        at += 16 + length
    return data[:24], records


def cut(data: bytes, places: Iterable[int]) -> list[tuple[int, bytes]]:
    """Files that begin at these packets: (first packet, file)."""
    header, records = pcap_records(data)
    starts = sorted({0, *places})
    ends = [*starts[1:], len(records)]
    return [(start, header + b"".join(records[start:end])) for start, end in zip(starts, ends, strict=True)]


def random_cut(data: bytes, count: int, seed: int) -> list[tuple[int, bytes]]:
    return cut(data, Random(seed).sample(range(1, len(pcap_records(data)[1])), count - 1))


def read_whole(data: bytes, *, bodies: bool = False, **options: Any) -> ReadResult:
    result = ReadResult()
    _read(result, Reading(Named(data, "0"), **options), {"0": 0}, bodies)
    return result


def read_together(files: Sequence[tuple[int, bytes]]) -> ReadResult:
    """All of them in one run."""
    result = ReadResult()
    paths = [Named(data, str(number)) for number, (_, data) in enumerate(files)]
    _read(result, Reading(paths), {str(number): first for number, (first, _) in enumerate(files)}, False)
    return result


def read_parts(
    files: Sequence[tuple[int, bytes]], *, bodies: bool = False, at_end: bool = False, part: Part | None = None,
    gone: Iterable[str] = (), **options: Any,
) -> ReadResult:  # fmt: skip
    """One run a file. With `at_end` the last one leaves something too, and a run without a file settles it."""
    result = ReadResult()
    firsts = {str(number): first for number, (first, _) in enumerate(files)}
    contents = {str(number): data for number, (_, data) in enumerate(files)}

    def reopen(uri: str) -> Named | None:
        return None if uri in gone else Named(contents[uri], uri)

    carried: list[str] = []
    runs = [[Named(data, str(number))] for number, (_, data) in enumerate(files)] + ([[]] if at_end else [])
    for number, paths in enumerate(runs):
        run_part = replace(
            part or Part(),
            carried=[parse_carried(text) for text in carried],
            last=number == len(runs) - 1,
            reopen=reopen,
        )
        reading = Reading(paths, part=run_part, **options)
        _read(result, reading, firsts, bodies)
        carried = [kept.to_json() for kept in reading.carried]
        result.carried_bytes = max(result.carried_bytes, sum(map(len, carried)))
    return result


def _read(result: ReadResult, reading: Reading, firsts: dict[str, int], bodies: bool) -> None:
    messages = Messages(["exchange_id"]) if bodies else None
    tables = []
    for batch in reading.batches():
        for index, row in enumerate(to_arrow(batch).to_pylist()):
            row["packet"] += firsts[row.pop("capture_uri")]
            row["frames"] = (_digest(batch.request_frame(index)), _digest(batch.response_frame(index)))
            assert row["exchange_id"] not in result.exchanges, f"{row['exchange_id']} came twice"
            result.exchanges[row["exchange_id"]] = row
        tables += list(messages.add(batch)) if messages is not None else []
    tables += list(messages.finish()) if messages is not None else []
    for table in tables:
        for row in table.table.to_pylist():
            key = (table.name, str(row.get("api_version", "")), row["exchange_id"])
            assert key not in result.bodies
            result.bodies[key] = repr(row)
    for connection in reading.account.connections:
        result.connections[_key(connection)] = _values(connection, reading)
    result.problems += [
        p.detail for kind, kept in reading.account.kept.items() if kind == "unfinished" for _, p in kept
    ]


def _digest(frame: bytes | None) -> bytes | None:
    return None if frame is None else blake2b(frame, digest_size=8).digest()


def _key(connection: Connection) -> Any:
    return connection.ends, connection.first_ns


def _values(connection: Connection, reading: Reading) -> tuple[Any, ...]:
    ends = reading.ends[connection.number] if connection.number < len(reading.ends) else None
    return (
        connection.last_ns, connection.initial_sequence, connection.opened, connection.closed, connection.client,
        connection.protocol, tuple(connection.bytes_seen), tuple(connection.gap_bytes), connection.retransmitted_bytes,
        connection.duplicated_bytes, connection.opener, connection.conflict_bytes,
        (ends.number, ends.software, ends.software_from) if ends is not None else (0, None, 0), connection.closed_ns,
    )  # fmt: skip


def differences(first: ReadResult, second: ReadResult) -> list[str]:
    """What the two do not tell alike."""
    differing = []
    for what, ours, theirs in (
        ("exchange", first.exchanges, second.exchanges),
        ("connection", first.connections, second.connections),
        ("body", first.bodies, second.bodies),
    ):
        mine: dict[Any, Any] = dict(ours)
        his: dict[Any, Any] = dict(theirs)
        differing += [f"{what} {key} only in the one: {mine[key]}" for key in mine.keys() - his.keys()]
        differing += [f"{what} {key} only in the other: {his[key]}" for key in his.keys() - mine.keys()]
        differing += [
            f"{what} {key}: {mine[key]} and {his[key]}" for key in mine.keys() & his.keys() if mine[key] != his[key]
        ]
    return differing


def random_pcap(seed: int, *, talks: int = 3, longest: int = 10, other_bytes: bool = False) -> bytes:
    """Kafka connections with every fault of `random_faults`, several flows at a time, some ports used twice."""
    random = Random(seed)
    packets: list[tuple[float, Packet]] = []
    for flow in range(random.randint(1, talks)):
        count = random.choice((1, 1, 1, 2))
        conversations = [
            conversation(random, random.randint(1, longest), sasl=random.random() < 0.2).messages for _ in range(count)
        ]
        faults = random_faults(random, count)
        if not other_bytes:
            faults = replace(faults, other_bytes=0.0)
        recorded = record(random, conversations, faults, flow).packets
        # Connections of different flows in any mixture, each of them in its own order.
        times = sorted(random.random() for _ in recorded)
        packets += zip(times, recorded, strict=True)
    packets.sort(key=lambda item: item[0])
    first = 1_700_000_000_000_000_000
    start = {packet.flow: packet.time for _, packet in reversed(packets)}
    out = bytearray(pcap([], nano=True))
    for _, packet in packets:
        raw = _ethernet(packet)
        whole = len(raw) + packet.wire_length - len(packet.payload)
        seconds, rest = divmod(first + packet.time - start[packet.flow], 10**9)
        out += struct.pack("<IIII", seconds, rest, len(raw), whole) + raw
    return bytes(out)


def _ethernet(packet: Packet) -> bytes:
    ends = endpoints(packet.flow)
    sides = [("10.0.0.1", ends.port_a), ("10.0.0.2", ends.port_b)]
    source, target = sides[packet.direction], sides[1 - packet.direction]
    segment = tcp(source[1], target[1], packet.sequence, max(packet.acknowledgement, 0), packet.flags, packet.payload)
    return ethernet(ipv4(source[0], target[0], segment, total=40 + packet.wire_length))
