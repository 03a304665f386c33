"""Runs the web server on a socket that already listens, until a signal ends it."""

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

# How long requests that are under way when it ends may still take. And all of its end: a page of a lake is made by a
# thread, which only reads, and which nothing can end.
_SECONDS_TO_FINISH = 1
_SECONDS_TO_LEAVE = 0.7
_INTERRUPTED = 130
# Connections that the system keeps until they are accepted. Of more, a client tries again after a second.
_QUEUED_CONNECTIONS = 512


class Server(uvicorn.Server):
    """`on_end` is called first when it ends: nobody who ends it should wait for what is being decoded."""

    def __init__(
        self, app: Starlette, http: type[ServerConnection], on_end: tuple[Callable[[], None], ...] = ()
    ) -> None:
        config = uvicorn.Config(
            app,
            http=http,
            ws="none",
            # asyncio accepts so many before it looks at one of them: files must be left for them, above the cap.
            backlog=max(1, http.most // 4),
            lifespan="off",
            log_level="error",
            access_log=False,
            server_header=False,
            # There is no proxy in front of it that could say who someone is.
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
        # asyncio takes the number of those to accept at once for the length of the queue as well.
        for listening in sockets or []:
            listening.listen(_QUEUED_CONNECTIONS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn logs a traceback for every request that it cuts off.
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
