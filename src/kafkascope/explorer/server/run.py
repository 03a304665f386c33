"""Runs the web server on a listening socket until a signal stops it."""

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from kafkascope.explorer.decode.decoder import DECODER
from kafkascope.explorer.server.connection import ServerConnection, connections

# How long pending requests may still take when it stops, and how long stopping may take in all: a page of a lake is
# made by a thread, which only reads and can't be stopped.
_SECONDS_TO_FINISH = 1
_SECONDS_TO_LEAVE = 0.7
_INTERRUPTED = 130
# Connections that the system queues until they are accepted. Beyond that, a client retries after a second.
_QUEUED_CONNECTIONS = 512


class Server(uvicorn.Server):
    """`on_end` is called first on stopping, so that stopping doesn't wait for decoding."""

    def __init__(
        self, app: Starlette, http: type[ServerConnection], on_end: tuple[Callable[[], None], ...] = ()
    ) -> None:
        config = uvicorn.Config(
            app,
            http=http,
            ws="none",
            # asyncio accepts this many before it handles one: they need open files above the cap.
            backlog=max(1, http.most // 4),
            lifespan="off",
            log_level="error",
            access_log=False,
            server_header=False,
            # No trusted proxy is in front of it.
            proxy_headers=False,
            timeout_graceful_shutdown=_SECONDS_TO_FINISH,
        )
        super().__init__(config)
        self._on_end = on_end

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        code = _INTERRUPTED if sig == signal.SIGINT else 0
        leaving = threading.Timer(_SECONDS_TO_LEAVE, os._exit, (code,))
        leaving.daemon = True
        leaving.start()
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # asyncio uses the number of connections to accept at once as the length of the queue too.
        for listening in sockets or []:
            listening.listen(_QUEUED_CONNECTIONS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn logs a traceback for every request it cuts off.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        for end in self._on_end:
            end()
        await super().shutdown(sockets)


def run(app: Starlette, listening: socket.socket) -> None:
    DECODER.prepare()
    Server(app, connections(_open_files()), (DECODER.close,)).run(sockets=[listening])


def _open_files() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft
