"""Files that broke the program once, each made by code: what it did is in the docstring, how large it is in `size`."""

import struct
from collections.abc import Callable
from dataclasses import dataclass

import cramjam
import numpy as np

from kafkascope.capture.request_log.lines import MARK
from tests.support.packet_build import (
    ACK,
    FIN,
    PSH,
    SYN,
    Talk,
    block,
    enhanced,
    ethernet,
    interface,
    ipv4,
    ipv6,
    pcap,
    section,
    tcp,
)
from tests.support.traffic import produce, request, response

_CLIENT, _SERVER = "10.0.0.1", "10.0.0.2"
_START_NS = 1_700_000_000_000_000_000
_RAW_IP = 101
# Where batches of packets end: the first is a mebibyte, each next one twice the one before.
_FIRST_BATCH = 1 << 20


class _File:
    """A pcap of raw IP packets, a microsecond apart."""

    def __init__(self) -> None:
        self.parts = [pcap([], link=_RAW_IP, nano=True)]
        self.size = len(self.parts[0])
        self._now = _START_NS

    def add(self, packet: bytes, wire: int | None = None) -> None:
        self._now += 1_000
        seconds, nanos = divmod(self._now, 10**9)
        head = struct.pack("<IIII", seconds, nanos, len(packet), len(packet) if wire is None else wire)
        self.parts.append(head + packet)
        self.size += len(head) + len(packet)

    def segment(
        self, way: int, sequence: int, payload: bytes = b"", *, flags: int = ACK, client: str = _CLIENT,
        port: int = 40_000, total: int | None = None, wire: int | None = None, acknowledged: int = 0,
    ) -> None:  # fmt: skip
        ends = ((client, port), (_SERVER, 9092))
        source, target = ends[way], ends[1 - way]
        content = tcp(source[1], target[1], sequence, acknowledged, flags, payload)
        self.add(ipv4(source[0], target[0], content, total=total), wire)

    def say(self, way: int, sequence: int, data: bytes) -> int:
        """In large segments; the sequence number after them."""
        for start in range(0, len(data), 60_000):
            piece = data[start : start + 60_000]
            self.segment(way, sequence, piece, flags=ACK | PSH)
            sequence += len(piece)
        return sequence

    def fill_batch(self) -> None:
        """Packets that are no IP up to the end of the batch that is begun."""
        end, batch = _FIRST_BATCH, _FIRST_BATCH
        while end <= self.size:
            batch = min(8 * _FIRST_BATCH, 2 * batch)
            end += batch
        while self.size < end + 64:
            self.add(bytes(min(60_000, max(end + 64 - self.size - 16, 1))))

    def content(self) -> bytes:
        return b"".join(self.parts)


def conflict_rows(connections: int) -> bytes:
    """Sixteen early segments of each connection, then one over all of them with other bytes: a row for each conflict,
    for which no room was reserved. Written past the table: the heap was corrupted."""
    file = _File()
    clients = [f"11.0.{number >> 8 & 255}.{number & 255}" for number in range(connections)]
    for client in clients:
        file.segment(0, 1_000, b"A" * 4, client=client)
        for early in range(16):
            file.segment(0, 1_100 + 20 * early, b"B" * 4, client=client)
    file.fill_batch()
    for client in clients:
        file.segment(0, 1_090, b"C" * 400, client=client)
    return file.content()


def node_becomes_gap(wire_bytes: int) -> bytes:
    """An early segment whose node was freed while it was still listed as one with bytes; the gap that takes the node
    has its length from the wire, which was copied out of the batch: an over-read of 200 MB."""
    file = _File()
    for sequence, fill in ((1_000, b"A"), (1_020, b"B"), (1_010, b"C")):
        file.segment(0, sequence, fill * 10)
    file.segment(0, 1_100, total=0, wire=wire_bytes)
    file.segment(0, 1_030, b"D" * 10)
    return file.content()


def jumbo_fragments(length: int) -> bytes:
    """Fragments with a jumbo length over 31 bits, which did not fit the column of lengths: a traceback."""
    file = _File()
    for offset in (0, 8, 0):
        option = (0, struct.pack(">BBBI", 0, 0xC2, 4, length))
        part = (44, struct.pack(">BHI", 0, offset | (offset == 0), 7))
        file.add(ipv6("2001::1", "2001::2", bytes(16), extensions=[option, part], length=0))
    return file.content()


def repeated_fragment(count: int) -> bytes:
    """8,190 fragments of a datagram that is never whole, then one of them again and again: all pieces were summed for
    each of them."""
    file = _File()
    pieces = [(8_191, False, b"last"), *((place, True, b"y" * 8) for place in range(1, 8_191))]
    pieces += [(5, True, b"y" * 8)] * count
    for place, more, data in pieces:
        file.add(ipv4(_CLIENT, _SERVER, data, identification=7, fragment=place | (0x2000 if more else 0)))
    return file.content()


def _handshake(file: _File) -> tuple[int, int]:
    """Two requests that tell what the connection is; the next sequence numbers of both sides."""
    file.segment(0, 999, flags=SYN)
    file.segment(1, 4_999, flags=SYN | ACK, acknowledged=1_000)
    requests = b"".join(request("ApiVersions", 0, number, "app") for number in (1, 2))
    return file.say(0, 1_000, requests), 5_000


def _tiny(first: int, count: int) -> bytes:
    """ApiVersions requests of 14 bytes, without a client id."""
    made = np.empty((count, 14), np.uint8)
    made[:, :8] = np.frombuffer(struct.pack(">iHH", 10, 18, 0), np.uint8)
    made[:, 8:12] = np.arange(first, first + count, dtype=">i4").view(np.uint8).reshape(-1, 4)
    made[:, 12:] = 255
    return made.tobytes()


def unanswered_requests(count: int) -> bytes:
    """Tiny requests that nobody answers: their rows were not counted as what waits. 98 MB of them took 4.5 GB."""
    file = _File()
    sequence, _ = _handshake(file)
    for first in range(0, count, 100_000):
        sequence = file.say(0, sequence, _tiny(3 + first, min(100_000, count - first)))
    return file.content()


def lost_responses(count: int) -> bytes:
    """Requests, then as many responses that were recorded in part: each went through all that wait."""
    file = _File()
    sequence, answer = _handshake(file)
    file.say(0, sequence, _tiny(3, count))
    for number in range(count // 25):
        file.segment(1, answer + 20 * number, struct.pack(">ii", 16, -5), total=60, wire=60)
    return file.content()


def responses_after_a_loss(count: int) -> bytes:
    """Requests, one response recorded in part, then the others: pairing looked at all that wait for each of them."""
    file = _File()
    sequence, answer = _handshake(file)
    file.say(0, sequence, _tiny(3, count))
    file.segment(1, answer, struct.pack(">ii", 16, -5), total=60, wire=60)
    answers = b"".join(struct.pack(">iihi", 10, number, 0, 0) for number in range(1, count // 25))
    file.say(1, answer + 20, answers)
    return file.content()


def byte_after_a_frame(topics: int) -> bytes:
    """A Metadata request of topics of two bytes each, and one byte more than it has: the careful codec made objects of
    all of it. 30 MB took 3.3 GB and 93 s."""
    count, varint = topics + 1, bytearray()
    while count > 127:
        varint.append(count & 127 | 128)
        count >>= 7
    varint.append(count)
    body = bytes(varint) + b"\x01\x00" * topics + b"\x01\x00\x00\x00" + b"\x00"
    content = struct.pack(">HHiH", 3, 9, 3, 3) + b"app\x00" + body
    file = _File()
    sequence, _ = _handshake(file)
    file.say(0, sequence, struct.pack(">i", len(content)) + content)
    return file.content()


def log_without_line_ends(size: int) -> bytes:
    """One line as long as the log is, in zstd: all of it was joined and split again for every mebibyte."""
    packer = cramjam.zstd.Compressor(level=1)
    packer.compress(MARK.encode())
    for _ in range(size >> 20):
        packer.compress(b" " * (1 << 20))
    return bytes(packer.finish())


def short_connections(count: int) -> bytes:
    """A connection for every request, each of them closed: what is kept of each is kept to the end."""
    file = _File()
    api_versions = request("ApiVersions", 0, 1, "app")
    answered = response("ApiVersions", 0, 1)
    for number in range(count):
        client, port = f"12.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", 1_024 + number % 60_000
        file.segment(0, 999, flags=SYN, client=client, port=port)
        file.segment(1, 4_999, flags=SYN | ACK, client=client, port=port, acknowledged=1_000)
        file.segment(0, 1_000, api_versions, flags=ACK | PSH | FIN, client=client, port=port)
        file.segment(1, 5_000, answered, flags=ACK | PSH | FIN, client=client, port=port)
    return file.content()


def one_way(count: int) -> bytes:
    """Produce requests alone, as a recorder of one direction has them: all of them wait for responses."""
    file = _File()
    produce_request = produce(0, 500)
    sequence = 1_000
    for first in range(0, count, 100):
        identities = range(first, min(first + 100, count))
        sequence = file.say(
            0, sequence, b"".join(produce_request[:8] + struct.pack(">i", n) + produce_request[12:] for n in identities)
        )
    return file.content()


# A header that may begin a frame, again and again; the frame is longer than what follows.
REQUEST_HEADS = struct.pack(">ihhih", 60_000, 18, 0, 5, -1) * 60
RESPONSE_HEADS = struct.pack(">ii", 60_000, 3) * 100
# A connection is left alone with more pieces than this, where nobody can tell what it speaks.
_LONGEST_UNKNOWN = 8_000


def empty_responses(count: int) -> bytes:
    """Nothing but a length and a correlation id; many places among them may be a request."""
    words = np.empty((count, 2), ">i4")
    words[:, 0], words[:, 1] = 4, np.arange(count)
    return words.tobytes()


def unknown_in_tiny_segments(count: int) -> bytes:
    """Connections without a start, a byte a segment: all places that may be a frame were looked at for each of them."""
    file = _File()
    for number in range(count):
        connection, place = divmod(number, _LONGEST_UNKNOWN)
        at = place % len(REQUEST_HEADS)
        file.segment(0, 1_000 + place, REQUEST_HEADS[at : at + 1], client=f"11.0.{connection >> 8}.{connection & 255}")
    return file.content()


def searched_in_tiny_segments(count: int) -> bytes:
    """A gap in both directions of a Kafka connection, then a byte a segment: the same again for each of them, and the
    first 16 KiB of responses were scanned from their start. 11 MB took 150 s."""
    file = _File()
    ways = list(_handshake(file))
    ways[0] = file.say(0, ways[0], _tiny(3, 60))
    for way in (0, 1):
        file.segment(way, ways[way], total=140, wire=140)
        ways[way] += 100
    for number in range(count):
        way, place = number & 1, number >> 1
        heads = (REQUEST_HEADS, RESPONSE_HEADS)[way]
        at = place % len(heads)
        file.segment(way, ways[way] + place, heads[at : at + 1])
    return file.content()


def responses_alone(count: int) -> bytes:
    """Empty responses of connections whose requests were not recorded, in large segments: each fourth byte of them may
    begin a request, and was decoded as one."""
    file = _File()
    responses = empty_responses(min(count, 500_000))
    for connection in range(-(-count // 500_000)):
        for start in range(0, len(responses), 1_400):
            file.segment(1, 5_000 + start, responses[start : start + 1_400], client=f"11.0.0.{connection}")
    return file.content()


def section_without_mark(count: int) -> bytes:
    """pcapng sections whose two lengths are right and whose byte-order mark is not: the length was put right again and
    again, for ever."""
    packet = ethernet(ipv4(_CLIENT, _SERVER, tcp(1, 2, payload=bytes(40))))
    broken = block(0x0A0D0D0A, bytes(16))
    return section() + interface() + (enhanced(packet, 5) + broken) * count + enhanced(packet, 5)


def plain_conversation(count: int) -> bytes:
    """A plain conversation: what a file that breaks nothing gives."""
    talk = Talk().open()
    for number in range(count):
        talk.say(0, request("ApiVersions", 0, number, "app")).say(1, response("ApiVersions", 0, number))
    return pcap(talk.close().packets)


@dataclass(frozen=True, slots=True)
class Break:
    """`make` takes a size: `small` in every run, `large` in long ones. `holds` is what the account must show, as
    `account_of` names it: at least so many."""

    make: Callable[[int], bytes]
    small: int
    large: int
    holds: Callable[[int], dict[str, int]] = lambda _: {}


def _exactly(name: str, more: int = 0) -> Callable[[int], dict[str, int]]:
    return lambda size: {name: size + more}


def _some(*names: str) -> Callable[[int], dict[str, int]]:
    return lambda _: dict.fromkeys(names, 1)


BREAKS = {
    "conflict rows": Break(
        conflict_rows, 2_000, 20_000, lambda size: {"connections": size, "conflict bytes": size * 64}
    ),
    "node becomes gap": Break(node_becomes_gap, 200_000_000, 2_000_000_000, _some("connections", "problems")),
    "jumbo fragments": Break(jumbo_fragments, 0xFFFF_FFF0, 0x8000_0000, _some("problems")),
    "repeated fragment": Break(repeated_fragment, 200, 50_000, _some("problems")),
    "unanswered requests": Break(unanswered_requests, 50_000, 7_000_000, _exactly("exchanges", 2)),
    "lost responses": Break(lost_responses, 5_000, 500_000, _exactly("exchanges", 2)),
    "responses after a loss": Break(responses_after_a_loss, 5_000, 500_000, _exactly("exchanges", 2)),
    "byte after a frame": Break(byte_after_a_frame, 20_000, 15_000_000, lambda _: {"exchanges": 3}),
    "log without line ends": Break(log_without_line_ends, 8 << 20, 2 << 30),
    "short connections": Break(short_connections, 1_000, 300_000, lambda size: {"exchanges": size}),
    "one way": Break(one_way, 5_000, 600_000, _exactly("exchanges")),
    "unknown in tiny segments": Break(unknown_in_tiny_segments, 10_000, 2_000_000, _some("connections")),
    "searched in tiny segments": Break(searched_in_tiny_segments, 10_000, 2_000_000, lambda _: {"exchanges": 62}),
    "responses alone": Break(responses_alone, 20_000, 5_000_000, _some("connections")),
    "section without mark": Break(section_without_mark, 3, 3_000, _some("problems", "packets")),
    "nothing broken": Break(plain_conversation, 10, 1_000, _exactly("exchanges")),
}
