"""A broker that wishes nobody well, in a process of its own: `python -m tests.client.evil_broker MODE` prints its port
and serves until it is killed. It answers as any broker, but for what its mode says."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

from kafkascope.codec.frame import DecodedFrame
from tests.client.servers import BROKER, HOST, Peer, ranges, serving

MANY, MILLION = 30_000, 1_000_000
# The version that is written by hand below.
METADATA = {3: (0, 12)}


def broker(node: int, host: str, port: int) -> bytes:
    """A row of Metadata v12."""
    return node.to_bytes(4, "big") + varint(len(host) + 1) + host.encode() + port.to_bytes(4, "big") + b"\0\0"


def varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes((*encoded, value))


def metadata(rows: int, topics: bytes = b"\x01", port: int = 0) -> bytes:
    """Header v1 and Metadata v12 after the correlation id: brokers without end. Port 0 is none, so that nobody tries
    for long to get there."""
    brokers = b"".join(broker(node, HOST, port) for node in range(rows))
    return b"\0" + bytes(4) + varint(rows + 1) + brokers + b"\x02c" + bytes(4) + topics + b"\0"


def topics(count: int) -> bytes:
    """Of the smallest kind: no error, the name `a`, no id, not internal, no partitions, no operations."""
    return varint(count + 1) + (bytes(2) + b"\x02a" + bytes(16) + b"\0\x01" + bytes(4) + b"\0") * count


# A mode is the bytes of a Metadata answer, or the port of the broker that Metadata names.
FRAMES = {
    "many": lambda: metadata(MANY),
    # where nobody listens
    "many-dead": lambda: metadata(MANY, port=1),
    "million": lambda: metadata(MILLION),
    "topics": lambda: metadata(1, topics(2_000_000)),
}
# Nodes that Metadata names, each with a list of transactions of 8 MB.
NODES = {"large": 16, "large-one": 1}
LARGE_BYTES = 8_000_000
PORTS = {"port-99999": 99_999, "port-negative": -1}
# ApiVersions of 100 MB, of which only the length matters.
LARGE_API_VERSIONS = 102_000_014


def large(correlation_id: int) -> bytes:
    """ListTransactions v0 to v2 with ids of 30,000 letters, with its length."""
    row = varint(30_001) + b"x" * 30_000 + bytes(8) + b"\x02s\0"
    count = LARGE_BYTES // len(row)
    content = correlation_id.to_bytes(4, "big") + bytes(7) + b"\x01" + varint(count + 1) + row * count + b"\0"
    return len(content).to_bytes(4, "big") + content


class Evil:
    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.frame = FRAMES[mode]() if mode in FRAMES else b""
        self.ports: list[int] = []

    async def __call__(self, peer: Peer) -> None:
        request = await peer.request()
        while True:
            if self.mode == "silent":
                await asyncio.Event().wait()
            if self.mode == "api-versions":
                await peer.write(LARGE_API_VERSIONS.to_bytes(4, "big") + request.correlation_id.to_bytes(4, "big"))
                while True:
                    await peer.write(bytes(1_000_000))
            if self.mode in NODES and request.api == "ListTransactions":
                await peer.write(large(request.correlation_id))
            elif request.api == "Metadata" and self.frame:
                content = request.correlation_id.to_bytes(4, "big") + self.frame
                await peer.write(len(content).to_bytes(4, "big") + content)
            else:
                await peer.answer(request, self.value(request, peer))
            request = await peer.request()

    def value(self, request: DecodedFrame, peer: Peer) -> dict[str, Any]:
        if request.api == "ApiVersions":
            return {"apiKeys": ranges(BROKER | METADATA)}
        place = {"host": peer.address.host, "port": PORTS.get(self.mode, peer.address.port)}
        if request.api == "Metadata" and self.mode in NODES:
            return peer.metadata(brokers=[place | {"nodeId": n, "port": port} for n, port in enumerate(self.ports)])
        if request.api == "Metadata":
            return peer.metadata(brokers=[{"nodeId": 1} | place])
        if request.api == "FindCoordinator":
            return {"coordinators": [{"key": "g", "nodeId": 1} | place]}
        if request.api == "DescribeCluster":
            return {"clusterId": "c", "brokers": [{"brokerId": 1} | place]}
        return {}


async def serve(mode: str) -> None:
    async with AsyncExitStack() as stack:
        broker = Evil(mode)
        for _ in range(NODES.get(mode, 1)):
            broker.ports.append((await stack.enter_async_context(serving(broker))).port)
        print(broker.ports[0], flush=True)
        await asyncio.Event().wait()


@contextmanager
def evil(mode: str) -> Iterator[str]:
    """Its address."""
    server = Popen([sys.executable, "-m", "tests.client.evil_broker", mode], stdout=PIPE, stderr=DEVNULL, text=True)
    try:
        assert server.stdout is not None
        yield f"{HOST}:{int(server.stdout.readline())}"
    finally:
        server.kill()
        server.wait()
        assert server.stdout is not None
        server.stdout.close()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
