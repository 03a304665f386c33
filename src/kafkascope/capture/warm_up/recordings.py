"""Makes small recordings that load or compile every kernel of reading.

A kernel is compiled on its first call from Python. These recordings reach each of them: both file formats, damage in
both, lost and reordered segments, an IP fragment without its rest."""

import io
import struct
from collections.abc import Iterator

from kafkascope.codec.frame import encode_frame
from kafkascope.schema.layouts.examples import example

_MAC = bytes(12)
_PCAP = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1)
_FIN, _SYN, _RESET, _PUSH, _ACK = 1, 2, 4, 8, 16
_MORE_FRAGMENTS = 0x2000
_EXCHANGES = 12
# More connections than the initial size of their table.
_SCANNED = 1_100
# Bytes that start neither a record nor a block.
_DAMAGE = b"\xff" * 64


def recordings() -> Iterator[bytes]:
    """Files, as their content."""
    whole = list(_conversation(40_000))
    yield _pcap(whole)
    lost = [packet for number, packet in enumerate(_conversation(40_001)) if number != 9]
    swapped = list(_conversation(40_002))
    swapped[7:12] = reversed(swapped[7:12])
    begun_before = list(_conversation(40_003))[6:-2]
    ports_reused = [*_conversation(40_000, first=9_000_000)]
    # A segment is lost, and nothing after it is Kafka.
    unreadable = [*list(_conversation(40_004))[:9], _segment(40_004, 0, 5_000, 1, _PUSH | _ACK, _DAMAGE)]
    unreadable += [_segment(40_004, side, 5_000 + len(_DAMAGE), 1, _RESET | _ACK, b"") for side in (0, 1)]
    # A request from the side that accepted the connection, and small pieces of no protocol, delivered at once.
    backwards = [*whole[:2], _segment(40_000, 1, 1, 1, _PUSH | _ACK, _frame("ApiVersionsRequest", 4, 1))]
    small = _pieces(40_006, [b"\xff\xf0"] * 40)
    small.append(small.pop(1))
    scan = [_segment(port, 0, 0, 0, _SYN, b"") for port in range(50_000, 50_000 + _SCANNED)]
    fragment = _ethernet(_ipv4(bytes(64), 0, _MORE_FRAGMENTS))
    yield _pcap([*whole, *lost, *swapped, *begun_before, *ports_reused, *unreadable, *small, *scan, fragment])
    yield _pcap(backwards)
    yield _pcapng(whole)
    yield _pcap(whole[:8]) + _DAMAGE + _pcap(whole[8:])[len(_PCAP) :]
    yield _pcapng(whole[:8]) + _DAMAGE + _pcapng(whole)


def _conversation(port: int, first: int = 0) -> Iterator[bytes]:
    """A client that requests metadata and a broker that forwards, one segment per message. `first` is the initial
    sequence number of both."""
    sent = [first + 1, first + 1]
    yield _segment(port, 0, first, 0, _SYN, b"")
    yield _segment(port, 1, first, first + 1, _SYN | _ACK, b"")
    for number in range(_EXCHANGES):
        for side, frame in enumerate(_metadata(number) if number else _envelope()):
            yield _segment(port, side, sent[side], sent[1 - side], _PUSH | _ACK, frame)
            sent[side] += len(frame)
    yield _segment(port, 0, sent[0], sent[1], _FIN | _ACK, b"")
    yield _segment(port, 1, sent[1], sent[0] + 1, _FIN | _ACK, b"")


def _pieces(port: int, payloads: list[bytes]) -> list[bytes]:
    """A client that sends these, one segment each."""
    segments = [_segment(port, 0, 0, 0, _SYN, b"")]
    sent = 1
    for payload in payloads:
        segments.append(_segment(port, 0, sent, 1, _PUSH | _ACK, payload))
        sent += len(payload)
    return segments


def _metadata(number: int) -> tuple[bytes, bytes]:
    return _frame("MetadataRequest", 12, number), _frame("MetadataResponse", 12, number)


def _envelope() -> tuple[bytes, bytes]:
    request, response = (frame[4:] for frame in _metadata(1))
    return _frame("EnvelopeRequest", 0, 0, requestData=request), _frame("EnvelopeResponse", 0, 0, responseData=response)


def _frame(name: str, version: int, number: int, **fields: bytes) -> bytes:
    header = {"correlationId": number} | ({"clientId": "warm-up"} if name.endswith("Request") else {})
    return encode_frame(name, version, example(name, version) | fields, header)


def _segment(port: int, side: int, sequence: int, acknowledged: int, flags: int, payload: bytes) -> bytes:
    ports = (port, 9092) if side == 0 else (9092, port)
    head = struct.pack(">HHIIBBHHH", *ports, sequence, acknowledged, 5 << 4, flags, 65_535, 0, 0)
    return _ethernet(_ipv4(head + payload, side))


def _ipv4(payload: bytes, side: int, fragment: int = 0) -> bytes:
    ends = (bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 1, fragment, 64, 6, 0)
    return head + ends[side] + ends[1 - side] + payload


def _ethernet(packet: bytes) -> bytes:
    return _MAC + b"\x08\x00" + packet


def _pcap(packets: list[bytes]) -> bytes:
    records = (
        struct.pack("<IIII", 1_700_000_000, number, len(packet), len(packet)) + packet
        for number, packet in enumerate(packets)
    )
    return _PCAP + b"".join(records)


def _pcapng(packets: list[bytes]) -> bytes:
    from kafkascope.capture.files.writer import PcapngWriter

    file = io.BytesIO()
    writer = PcapngWriter(file)
    for number, packet in enumerate(packets):
        writer.write(1_700_000_000_000_000_000 + number * 1000, packet)
    return file.getvalue()
