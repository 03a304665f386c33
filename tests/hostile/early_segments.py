"""Recordings of segments that come too early, in the orders that make a reader look at the most of them."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from kafkascope.limits import MAX_EARLY_SEGMENTS
from tests.support.packet_build import ipv4, pcap, tcp

Numbers = npt.NDArray[np.int64]

_RAW_IP = 101
_START_NS = 1_700_000_000_000_000_000
# A record of a pcap file, then IPv4 and TCP without options.
_RECORD, _LENGTH, _CLIENT, _SEQUENCE = 16, 16 + 2, 16 + 12, 16 + 20 + 4
# As many as wait without one being given up for the others, and some room.
_WAITING = MAX_EARLY_SEGMENTS - 192
_FIRST = 1_000


def packets(client: Numbers, offset: Numbers, *, size: int = 1, wire: Numbers | None = None) -> bytes:
    """A segment of `size` bytes for each offset, a microsecond apart. Where `wire` isn't 0, the segment had that many
    bytes and the snap length cut all but `size` of them."""
    packet = ipv4("10.0.0.0", "10.9.9.9", tcp(40_000, 9092, _FIRST, payload=b"e" * size))
    rows = np.empty((len(offset), _RECORD + len(packet)), np.uint8)
    rows[:, _RECORD:] = np.frombuffer(packet, np.uint8)
    now = _START_NS + 1_000 * np.arange(len(offset))
    head = np.empty((len(offset), 4), "<u4")
    head[:, 0], head[:, 1], head[:, 2], head[:, 3] = now // 10**9, now % 10**9, len(packet), len(packet)
    if wire is not None:
        cut = wire > 0
        head[cut, 3] = 40 + wire[cut]
        rows[cut, _LENGTH : _LENGTH + 2] = _big(40 + wire[cut], ">u2")
    rows[:, :_RECORD] = head.view(np.uint8)
    rows[:, _CLIENT : _CLIENT + 4] = _big(0x0A000000 + client, ">u4")
    rows[:, _SEQUENCE : _SEQUENCE + 4] = _big(_FIRST + offset, ">u4")
    return pcap([], link=_RAW_IP, nano=True) + rows.tobytes()


def _big(numbers: Numbers, form: str) -> npt.NDArray[np.uint8]:
    return numbers.astype(form).view(np.uint8).reshape(len(numbers), -1)


def _rounds(order: Numbers, count: int, streams: int = 1, size: int = 1) -> bytes:
    """The places of `order` again and again, each time after those before, on all streams in turn. The first byte of
    each stream says where it begins; the one after it never comes."""
    number = np.arange(count) // streams
    width = int(order.max()) + 2
    offset = (size + 1) * (1 + order[number % len(order)] + number // len(order) * width)
    offset[:streams] = 0
    return packets(np.arange(count) % streams, offset, size=size)


def descending(count: int) -> bytes:
    """Each before all others that wait."""
    return _rounds(np.arange(_WAITING)[::-1], count)


def alternating(count: int) -> bytes:
    """From both ends to the middle: every second one is after half of those that wait."""
    place = np.arange(_WAITING)
    return _rounds(np.where(place % 2, _WAITING - 1 - place // 2, place // 2), count)


def shuffled(count: int) -> bytes:
    return _rounds(np.random.default_rng(15).permutation(_WAITING), count, size=8)


def bit_reversed(count: int) -> bytes:
    """Each halves the largest distance that is left."""
    place, order = np.arange(4_096), np.zeros(4_096, np.int64)
    for bit in range(12):
        order |= (place >> bit & 1) << (11 - bit)
    return _rounds(order, count)


def many_streams(count: int) -> bytes:
    """All that may wait, over fifty streams in turn."""
    return _rounds(np.random.default_rng(15).permutation(_WAITING), count, streams=50)


def repeated(count: int) -> bytes:
    """The last but one of those that wait, again and again."""
    waiting = min(_WAITING, count // 2)
    offset = np.full(count, 2 * waiting - 2)
    offset[:waiting] = 2 * np.arange(waiting)
    offset[1:waiting] += 2
    return packets(np.zeros(count, np.int64), offset)


def covered(count: int) -> bytes:
    """Segments that the snap length cut to one byte: the first fills the holes between those that wait, and each
    covers them all."""
    waiting = min(_WAITING // 2, count // 2)
    offset = np.full(count, 2)
    offset[:waiting] = 2 * np.arange(waiting)
    wire = np.zeros(count, np.int64)
    wire[waiting:] = 2 * waiting
    return packets(np.zeros(count, np.int64), offset, wire=wire)


ORDERS: dict[str, Callable[[int], bytes]] = {
    "descending": descending,
    "alternating": alternating,
    "shuffled": shuffled,
    "bit-reversed": bit_reversed,
    "many streams": many_streams,
    "repeated": repeated,
    "covered": covered,
}
