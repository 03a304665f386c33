"""What a response weighs is known without decoding it: never less than it takes, and found within the limit."""

import asyncio
import tracemalloc
from typing import Any

import pytest

from kafkascope.client.transport.reading import HeavyError, read_response
from kafkascope.client.transport.response_size import ResponseWeight, weigh, without_rows
from kafkascope.codec.message import decode, encode
from kafkascope.errors import DecodeError
from kafkascope.limits import MAX_BROKERS, MAX_CAREFUL_MEMORY_BYTES
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.layouts.examples import example
from kafkascope.schema.layouts.layout import layout
from tests.client.evil_broker import varint

PLENTY = 1 << 40
RESPONSES = [
    (f"{api}Response", version) for api in apis().values() for version in message(f"{api}Response").all_versions()
]


def weighed(name: str, version: int, data: bytes, most: int = PLENTY) -> ResponseWeight:
    steps = weigh(name, version, data, 0, most)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            weight: ResponseWeight = stop.value
            return weight


def test_stepping_over_every_response_of_the_catalog_ends_at_its_last_byte() -> None:
    assert len(RESPONSES) > 350
    for name, version in RESPONSES:
        for value in (example(name, version), {}):
            data = encode(name, version, value)
            assert weighed(name, version, data).end == len(data), (name, version)


def partition(number: int) -> dict[str, Any]:
    nodes = [1_000, 2_000, 3_000]
    epoch = 10_000 + number
    return {"partitionIndex": number, "leaderId": 1_000, "leaderEpoch": epoch, "replicaNodes": nodes, "isrNodes": nodes}


@pytest.mark.parametrize(
    ("name", "version", "value"),
    [
        ("MetadataResponse", 12, {"topics": [{"name": "orders", "partitions": [partition(n) for n in range(2_000)]}]}),
        ("MetadataResponse", 1, {"brokers": [{"nodeId": n, "host": "h", "port": 9092} for n in range(2_000)]}),
        ("ListGroupsResponse", 5, {"groups": [{"groupId": "", "protocolType": ""}] * 2_000}),
        ("ListGroupsResponse", 0, {"groups": [{"groupId": f"g-{n}", "protocolType": "connect"} for n in range(2_000)]}),
        ("ApiVersionsResponse", 4, {"apiKeys": [{"apiKey": 999, "minVersion": 999, "maxVersion": 999}] * 2_000}),
        ("DescribeConfigsResponse", 4, {"results": [{"configs": [{"name": "n", "value": "v" * 99}] * 500}] * 4}),
        ("SaslHandshakeResponse", 1, {"mechanisms": ["PLAIN"] * 2_000}),
        ("FetchResponse", 13, {"responses": [{"partitions": [{"records": bytes(9_999)}] * 20}]}),
    ],
)  # fmt: skip
def test_a_response_takes_no_more_than_it_weighs(name: str, version: int, value: dict[str, Any]) -> None:
    data = encode(name, version, value)
    decode(name, version, data)  # the decoder itself is made once
    tracemalloc.start()
    held = decode(name, version, data)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held.exact
    assert taken <= weighed(name, version, data).memory <= 2.5 * taken


def test_stepping_ends_at_the_limit() -> None:
    data = encode("ListGroupsResponse", 5, {"groups": [{"groupId": "g" * 100, "protocolType": ""}] * 2_000})
    outcome = weighed("ListGroupsResponse", 5, data, 10_000)
    assert outcome.memory > 10_000 and outcome.end is None


@pytest.mark.parametrize(
    ("name", "version"), [("MetadataResponse", 12), ("MetadataResponse", 8), ("DescribeClusterResponse", 2)]
)
def test_brokers_beyond_the_limit_are_cut_out_of_the_bytes(name: str, version: int) -> None:
    key = "nodeId" if name.startswith("Metadata") else "brokerId"
    rows = [{key: n, "host": "h" * (n % 300), "port": 9092} for n in range(MAX_BROKERS + 77)]
    data = encode(name, version, {"brokers": rows, "clusterId": "c", "controllerId": 5})
    weight = weighed(name, version, data)
    assert weight.rows == MAX_BROKERS + 77
    whole = decode(name, version, data).value
    cut = decode(name, version, without_rows(data, weight, layout(name, version).flexible))
    assert cut.exact and cut.value == {**whole, "brokers": whole["brokers"][:MAX_BROKERS]}
    just = encode(name, version, {"brokers": rows[:MAX_BROKERS], "clusterId": "c"})
    assert weighed(name, version, just).cut is None


@pytest.mark.parametrize("cut", [1, 100, 2_000])
def test_bytes_that_are_no_such_response_weigh_what_was_read(cut: int) -> None:
    data = encode("ListGroupsResponse", 5, {"groups": [{"groupId": "g" * 100, "protocolType": ""}] * 20})
    assert weighed("ListGroupsResponse", 5, data[:-cut]).end is None
    frame = bytes(5) + data[:-cut]
    with pytest.raises(DecodeError):
        asyncio.run(read_response("ListGroups", 5, frame))


def groups_frame(count: int) -> bytes:
    """Header v1, then no throttling, no error, and groups with nothing in their four texts."""
    return bytes(5) + bytes(6) + varint(count + 1) + b"\x01\x01\x01\x01\x00" * count + b"\0"


def test_a_response_beyond_its_memory_is_refused_before_it_is_decoded() -> None:
    frame = groups_frame(2_000)
    assert len(asyncio.run(read_response("ListGroups", 5, frame)).value["groups"]) == 2_000
    with pytest.raises(HeavyError, match=rf"response of {len(frame):,} bytes takes more memory .* \(100,000 bytes\)"):
        asyncio.run(read_response("ListGroups", 5, frame, 100_000))


def test_odd_bytes_are_read_carefully_up_to_a_limit() -> None:
    """A byte after the message sends all of it to the careful decoder, which nothing else could run beside."""
    few = asyncio.run(read_response("ListGroups", 5, groups_frame(2_000) + b"\0"))
    assert not few.exact and len(few.value["groups"]) == 2_000
    many = groups_frame(MAX_CAREFUL_MEMORY_BYTES // 200)
    assert asyncio.run(read_response("ListGroups", 5, many)).exact
    with pytest.raises(DecodeError, match="isn't in the form that Kafka writes"):
        asyncio.run(read_response("ListGroups", 5, many + b"\0"))


def test_tags_of_a_header_and_of_a_body_weigh_too() -> None:
    """Two bytes each: a number and a size of 0. Careful decoding makes a dict of each."""
    tags = varint(500_000) + b"".join(varint(number) + b"\0" for number in range(500_000))
    for frame in (bytes(4) + tags + bytes(6) + b"\x01\0", bytes(5) + bytes(6) + b"\x01" + tags):
        with pytest.raises(HeavyError):
            asyncio.run(read_response("ListGroups", 5, frame))
    few = bytes(4) + varint(1) + b"\x09" + varint(1_100) + bytes(1_100) + groups_frame(1)[5:]
    assert len(asyncio.run(read_response("ListGroups", 5, few)).value["groups"]) == 1
