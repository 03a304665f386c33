"""A small server for what no broker does: silence, half a frame, garbage. It answers what its test writes for it, in
frames that the codec encodes, and nothing more."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from kafkascope.client.settings import Address
from kafkascope.codec.frame import DecodedFrame, decode_frame, encode_frame
from kafkascope.schema.catalog import apis, index

HOST = "127.0.0.1"
Handler = Callable[["Peer"], Awaitable[None]]
# What the catalog knows of every API, as a broker would offer it.
EVERYTHING = {
    key: (index()[f"{api}Request"].versions.ranges[0][0], index()[f"{api}Request"].versions.ranges[-1][1])
    for key, api in apis().items()
}
BROKER = {key: versions for key, versions in EVERYTHING.items() if key not in (4, 5, 6, 7, 52, 53, 54, 58, 59)}


class Peer:
    """The server's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: Address) -> None:
        self.reader = reader
        self.writer = writer
        self.address = address

    async def request(self) -> DecodedFrame:
        size = await self.reader.readexactly(4)
        return decode_frame(size + await self.reader.readexactly(int.from_bytes(size, "big")))

    def frame(self, request: DecodedFrame, value: Mapping[str, Any], version: int | None = None) -> bytes:
        """An answer with its length; `version` where it is not the request's."""
        header = {"correlationId": request.correlation_id}
        name = f"{request.api}Response"
        return encode_frame(name, request.version if version is None else version, dict(value), header)

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, request: DecodedFrame, value: Mapping[str, Any], version: int | None = None) -> None:
        await self.write(self.frame(request, value, version))

    async def greet(self, versions: Mapping[int, tuple[int, int]] = BROKER) -> DecodedFrame:
        """Answers ApiVersions and gives the request that follows."""
        while True:
            request = await self.request()
            if request.api != "ApiVersions":
                return request
            await self.answer(request, {"apiKeys": ranges(versions)})

    def metadata(self, **more: Any) -> dict[str, Any]:
        """One broker, this one."""
        broker = {"nodeId": 1, "host": self.address.host, "port": self.address.port}
        return {"brokers": [broker], "controllerId": 1, "clusterId": "c", "topics": []} | more


def ranges(versions: Mapping[int, tuple[int, int]]) -> list[dict[str, int]]:
    return [{"apiKey": key, "minVersion": low, "maxVersion": high} for key, (low, high) in versions.items()]


@asynccontextmanager
async def serving(*handlers: Handler) -> AsyncIterator[Address]:
    """The first connection gets the first handler, and so on; the last one serves all that follow."""
    tasks: set[asyncio.Task[None]] = set()
    failures: list[BaseException] = []
    count = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        handler = handlers[min(count, len(handlers) - 1)]
        count += 1
        try:
            await handler(Peer(reader, writer, Address(*writer.get_extra_info("sockname")[:2])))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client went away, or the test is over
        except Exception as error:  # noqa: BLE001 (told when the server closes)
            failures.append(error)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, HOST, 0)
    try:
        yield Address(*server.sockets[0].getsockname()[:2])
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await server.wait_closed()
        # the transports' own last callbacks
        await asyncio.sleep(0)
    assert not failures, failures


async def silence(_: Peer) -> None:
    await asyncio.Event().wait()


def sending(data: bytes, *, first: bool = False) -> Handler:
    """Sends bytes, after a request or at once, and closes."""

    async def handler(peer: Peer) -> None:
        if not first:
            await peer.request()
        await peer.write(data)

    return handler
