"""What a recording had, counted: also what is no longer kept."""

import numpy as np

from kafkascope import limits
from kafkascope.capture.base.flow import Packets
from kafkascope.capture.driver import Capture
from kafkascope.capture.exchanges.account import Account
from kafkascope.capture.exchanges.exchanges import Recordings
from tests.support.packet_build import ipv4, tcp

RAW_IP = 101


def test_connections_that_are_forgotten_are_still_counted_by_protocol() -> None:
    """Ten bytes each of more connections without Kafka than are kept, from one address after the other."""
    count, turns = limits.MAX_OTHER_CONNECTIONS // 2, 4
    packet = np.frombuffer(ipv4("11.0.0.0", "10.0.0.2", tcp(7, 9092, payload=b"no Kafka, ")), np.uint8)
    account = Account()
    capture = Capture(Recordings(), account, names=False, kafka_ports=())
    for turn in range(turns):
        made = np.tile(packet, (count, 1))
        made[:, 13:16] = (np.arange(turn * count, (turn + 1) * count)[:, None] >> np.array([16, 8, 0])) & 255
        sizes = np.full(count, len(packet), np.int32)
        start = np.arange(count, dtype=np.int64) * len(packet)
        times = np.full(count, turn, np.int64)
        link = np.full(count, RAW_IP, np.int32)
        packets = Packets(made.reshape(-1), start, sizes, sizes, times, link, turn * count)
        assert not any(map(len, capture.feed(packets, live=False)))
    protocols = account.protocols().values()
    assert len(account.connections) == limits.MAX_OTHER_CONNECTIONS
    assert sum(number for number, _ in protocols) == turns * count
    assert sum(size for _, size in protocols) == turns * count * 10
