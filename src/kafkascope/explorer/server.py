"""Runs the web server on a socket that listens already, until a signal ends it."""

import logging
import socket
from collections.abc import Callable

import uvicorn
from starlette.applications import Starlette

from kafkascope.explorer.connection import Connection, connections
from kafkascope.explorer.decoder import DECODER
from kafkascope.explorer.stopping import STOPPING

# How long requests that are under way when it ends may still take.
_SECONDS_TO_FINISH = 1


class Server(uvicorn.Server):
    """`on_end` is called first when it ends: nobody who ends it should wait for what is being decoded."""

    def __init__(self, app: Starlette, http: type[Connection], on_end: tuple[Callable[[], None], ...] = ()) -> None:
        config = uvicorn.Config(
            app,
            http=http,
            ws="none",
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

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn logs a traceback for every request that it cuts off.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        for end in self._on_end:
            end()
        await super().shutdown(sockets)


def run(app: Starlette, listening: socket.socket) -> None:
    DECODER.prepare()
    Server(app, connections(_open_files()), (STOPPING.set, DECODER.close)).run(sockets=[listening])


def _open_files() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft
