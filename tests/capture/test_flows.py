"""Flows: both directions of a connection have one number, however many there are, and unused numbers go to others."""

import numpy as np

from kafkascope import limits
from kafkascope.capture.base.flow import Endpoints, Flows, Packets
from kafkascope.capture.net.flow_table import flow_number
from kafkascope.capture.net.segments import SegmentReader
from kafkascope.capture.tcp.reassembly import Reassembler
from tests.capture.net.test_segments import EXPECTED4, IPV6_TCP, SOURCE, TARGET
from tests.support.packet_build import ipv4, ipv6, tcp


def test_both_directions_are_one_flow_with_the_lower_end_first() -> None:
    flows = Flows()
    reader = SegmentReader(flows)
    cases = [
        ((SOURCE, 40000), (TARGET, 9092)),
        ((SOURCE, 9092), (SOURCE, 40000)),  # one address: the port decides
        (("127.0.0.1", 1), ("200.0.0.1", 1)),
        ((SOURCE, 5), (SOURCE, 5)),
    ]
    packets = []
    for low, high in cases:
        packets += [ipv4(low[0], high[0], tcp(low[1], high[1])), ipv4(high[0], low[0], tcp(high[1], low[1]))]
    packets += [ipv6("7fff::", "8000::", tcp(1, 1)), ipv6("8000::", "7fff::", tcp(1, 1))]
    fed = reader.feed(batch(packets))
    assert fed.flow.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert fed.direction.tolist() == [0, 1, 0, 1, 0, 1, 0, 0, 0, 1]
    assert flows.ends[1] == Endpoints(EXPECTED4.source, 9092, EXPECTED4.source, 40000)
    assert flows.ends[4].address_a[:2] == b"\x7f\xff"


def batch(packets: list[bytes], link: int = 101) -> Packets:
    sizes = np.array([len(packet) for packet in packets], np.int32)
    return Packets(
        data=np.frombuffer(b"".join(packets), np.uint8).copy(),
        start=(np.cumsum(sizes) - sizes).astype(np.int64),
        captured=sizes,
        original=sizes,
        time_ns=np.zeros(len(packets), np.int64),
        link=np.full(len(packets), link, np.int32),
        first=0,
    )


def test_flows_are_numbered_in_order_however_many() -> None:
    flows = Flows()
    reader = SegmentReader(flows)
    packets = [
        ipv4(f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}", "9.9.9.9", tcp(1000 + i % 7, 9092)) for i in range(30_000)
    ]
    assert reader.feed(batch(packets)).flow.tolist() == list(range(30_000))
    assert reader.feed(batch(packets[::-1])).flow.tolist() == list(range(30_000))[::-1]
    assert len(set(flows.ends)) == 30_000


def test_keys_that_differ_in_one_word_are_different_flows_in_a_crowded_table() -> None:
    alike = [tuple(1000 + (word == changed) for word in range(5)) for changed in range(6)]
    for seed in range(50):
        slots = np.full(8, -1, np.int32)
        keys = np.empty((6, 5), np.int64)
        known = np.zeros(2, np.int64)
        for _ in range(2):
            assert [flow_number(slots, keys, known, seed, *key) for key in alike] == list(range(6))


def test_another_reader_goes_on_with_the_flows_of_the_one_before() -> None:
    flows = Flows()
    packets = [ipv4(SOURCE, f"1.2.3.{i}", tcp(i, 9092)) for i in range(100)]
    SegmentReader(flows).feed(batch(packets))
    assert SegmentReader(flows).feed(batch([*packets[::-1], IPV6_TCP])).flow.tolist() == [*range(99, -1, -1), 100]
    assert len(flows.ends) == 101


def test_numbers_of_unused_flows_are_given_to_others() -> None:
    flows = Flows()
    reader = SegmentReader(flows)
    packets = [ipv4(SOURCE, f"1.2.{i >> 8}.{i & 255}", tcp(7, 9092)) for i in range(6_000)]
    reader.feed(batch(packets[:5_000]))
    reader.release(np.array([3, 4_000, 17], np.int64))
    fed = reader.feed(batch([packets[5_000], packets[16], packets[5_001], packets[4_000]]))
    assert fed.flow.tolist() == [17, 16, 4_000, 3]
    assert [flows.ends[number].address_a[-2:] for number in (17, 16, 4_000, 3)] == [
        number.to_bytes(2, "big") for number in (5_000, 16, 5_001, 4_000)
    ]
    # The table is full then, and grows.
    numbers = reader.feed(batch(packets)).flow.tolist()
    assert len(set(numbers)) == 6_000
    assert numbers[5_000:5_002] + numbers[4_000:4_001] == [17, 4_000, 3]
    assert len(flows.ends) == 6_000


def test_flood_of_flows_is_bounded() -> None:
    """A SYN each of four times as many flows as are kept without a connection."""
    flows = Flows()
    reader, reassembler = SegmentReader(flows), Reassembler(flows)
    size = limits.MAX_UNUSED_FLOWS // 2
    packet = np.frombuffer(ipv4("11.0.0.0", TARGET, tcp(7, 9092, flags=2)), np.uint8)
    for turn in range(12):
        made = np.tile(packet, (size, 1))
        made[:, 13:16] = (np.arange(turn * size, (turn + 1) * size)[:, None] >> np.array([16, 8, 0])) & 255
        sizes = np.full(size, len(packet), np.int32)
        reassembler.feed(
            reader.feed(
                Packets(
                    made.reshape(-1), np.arange(size, dtype=np.int64) * len(packet), sizes, sizes,
                    np.zeros(size, np.int64), np.full(size, 101, np.int32), turn * size,
                )
            )
        )  # fmt: skip
        reader.release(reassembler.take_released_flows())
    assert len(flows.ends) <= limits.MAX_UNUSED_FLOWS + limits.MAX_OTHER_CONNECTIONS + 2 * size
    assert len(reassembler.connections) == limits.MAX_OTHER_CONNECTIONS
    assert {connection.ends.address_b[-4] for connection in reassembler.connections} == {11}
    last = {int.from_bytes(flows.ends[c.flow].address_b[-3:], "big") for c in reassembler.connections}
    assert last == set(range(12 * size - limits.MAX_OTHER_CONNECTIONS, 12 * size))


def test_a_batch_of_nothing_gives_nothing() -> None:
    fed = SegmentReader(Flows()).feed(batch([]))
    assert (len(fed.flow), fed.problems) == (0, ())
