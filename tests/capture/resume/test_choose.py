"""Tasks that each read a part of the flows have all of them together, each once."""

import numpy as np
import pytest

from kafkascope.capture.base.flow import Endpoints, Flows
from kafkascope.capture.resume.choose import Chooser, bucket, flow_hash
from kafkascope.capture.resume.run import Part
from tests.captures import NAMES, capture
from tests.support.flows import Packet as Sent
from tests.support.flows import endpoints, segments
from tests.support.parts import ReadResult, differences, random_cut, random_pcap, read_parts, read_whole


def together(parts: list[ReadResult]) -> ReadResult:
    total = ReadResult()
    for part in parts:
        assert not total.exchanges.keys() & part.exchanges.keys()
        assert not total.connections.keys() & part.connections.keys()
        total.exchanges |= part.exchanges
        total.connections |= part.connections
    return total


@pytest.mark.parametrize("name", NAMES)
def test_buckets_together_are_the_whole(name: str) -> None:
    data = capture(name)
    whole = read_whole(data)
    for count in (2, 7):
        parts = [read_whole(data, part=Part(choose=bucket(number, count))) for number in range(count)]
        assert sum(bool(part.connections) for part in parts) > 1
        assert differences(whole, together(parts)) == []


def test_buckets_read_file_by_file_are_the_whole() -> None:
    for seed in range(12):
        data = random_pcap(seed, talks=6)
        whole = read_whole(data)
        files = random_cut(data, 4, seed)
        parts = [read_parts(files, part=Part(choose=bucket(number, 3))) for number in range(3)]
        assert differences(whole, together(parts)) == [], f"seed {seed}"


def test_hash_of_a_flow_is_the_same_everywhere() -> None:
    ends = Endpoints(bytes(10) + b"\xff\xff\x0a\0\0\1", 40_000, bytes(10) + b"\xff\xff\x0a\0\0\2", 9092)
    assert flow_hash(ends) == HASH
    assert len({flow_hash(endpoints(number)) % 16 for number in range(200)}) == 16


HASH = 0x8A6F14F41A97CC18


def test_number_that_is_used_again_is_chosen_anew() -> None:
    flows = Flows([endpoints(0), endpoints(1)])
    chooser = Chooser(flows, lambda ends: ends.port_a == 40_000)
    batch = segments([Sent(0, flow, 0, 0, 16, b"x", 1, 0, -1, 0) for flow in (0, 1, 0)])
    assert chooser.choose(batch).flow.tolist() == [0, 0]
    chooser.release(np.array([0, 1]))
    flows.ends[0], flows.ends[1] = flows.ends[1], flows.ends[0]
    assert chooser.choose(batch).flow.tolist() == [1]
