"""Serves `check --listen`: each GET of /metrics looks at the cluster and returns OpenMetrics. A cluster that is gone is
`kafkascope_up 0`, and is retried at the next scrape."""

import asyncio
import signal
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

from kafkascope.cli.live.check_options import CheckOptions
from kafkascope.cli.live.options import note_of_client
from kafkascope.cli.terminal import note
from kafkascope.client.check.openmetrics import CONTENT_TYPE, PLAIN_CONTENT_TYPE
from kafkascope.client.check.run import check_cluster, render_metrics, render_unreachable
from kafkascope.client.cluster import Cluster, connect
from kafkascope.client.settings import Address
from kafkascope.errors import KafkascopeError, ReachError, UsageError
from kafkascope.limits import MAX_HTTP_HEAD_BYTES

if TYPE_CHECKING:
    from kafkascope.client.settings import Settings

LOOPBACK = "127.0.0.1"
PATHS = ("/metrics", "/")
# Timeout for the head of a request; nginx's client_header_timeout is a minute.
HEAD_SECONDS = 10.0
OPENMETRICS = "application/openmetrics-text"
_PLAIN = "text/plain; charset=utf-8"


def parse_listen(text: str) -> Address:
    host, _, port = text.strip().rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise UsageError(
            f"--listen: '{text}' isn't an address to listen on; write it as 9308, 0.0.0.0:9308 or [::1]:9308"
        )
    return Address(host.strip("[]") or LOOPBACK, int(port))


async def listen(settings: "Settings", options: CheckOptions, place: Address) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    async with Watched(settings, options) as watched:
        try:
            server = await asyncio.start_server(watched.answer, place.host, place.port, limit=MAX_HTTP_HEAD_BYTES)
        except OSError as error:
            raise UsageError(f"--listen: cannot listen on {place}: {(error.strerror or str(error)).lower()}") from None
        async with server:
            host, port = server.sockets[0].getsockname()[:2]
            note(f"serving http://{Address(host, port)}/metrics until Ctrl-C")
            await stop.wait()
    return 0


class Watched:
    """The cluster, connected while it responds. Simultaneous scrapes share one look."""

    def __init__(self, settings: "Settings", options: CheckOptions) -> None:
        self._settings, self._options = settings, options
        self._cluster: Cluster | None = None
        self._open = AsyncExitStack()
        self._looking: asyncio.Task[str] | None = None

    async def __aenter__(self) -> "Watched":
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait((self._looking,))
        await self._open.aclose()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one request per connection."""
        try:
            with suppress(OSError):
                async with asyncio.timeout(HEAD_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                writer.write(await self._respond(head))
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.write(response("400 Bad Request", _PLAIN, "no HTTP request\n"))
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _respond(self, head: bytes) -> bytes:
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split()
        if len(words) != 3 or not words[2].startswith("HTTP/"):
            return response("400 Bad Request", _PLAIN, "no HTTP request\n")
        method, path = words[0], words[1].partition("?")[0]
        if path not in PATHS:
            return response("404 Not Found", _PLAIN, "metrics are at /metrics\n")
        if method not in ("GET", "HEAD"):
            return response("405 Method Not Allowed", _PLAIN, "GET /metrics\n")
        accepted = next((line for line in lines[1:] if line.lower().startswith("accept:")), "")
        kind = CONTENT_TYPE if OPENMETRICS in accepted else PLAIN_CONTENT_TYPE
        try:
            text = await self._metrics()
        except KafkascopeError as error:
            return response("500 Internal Server Error", _PLAIN, f"{error}\n", body=method == "GET")
        return response("200 OK", kind, text, body=method == "GET")

    async def _metrics(self) -> str:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        # A client that hangs up doesn't cancel the look for the others.
        return await asyncio.shield(self._looking)

    async def _look(self) -> str:
        try:
            if self._cluster is None:
                self._cluster = await self._open.enter_async_context(connect(self._settings, on_note=note_of_client))
            options = self._options
            return render_metrics(
                await check_cluster(self._cluster, options.kinds, options.groups, options.limits, options.seconds)
            )
        except ReachError:
            self._cluster = None
            await self._open.aclose()
            return render_unreachable()


def response(status: str, kind: str, text: str, *, body: bool = True) -> bytes:
    content = text.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    return head.encode() + (content if body else b"")
