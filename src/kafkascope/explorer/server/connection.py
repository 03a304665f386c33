"""Closes connections that send no request, send half of one, or don't read the response.

uvicorn by itself only closes a connection that is silent after a response, but not one that never sends a request or
sends a byte now and then."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from kafkascope.limits import MAX_OPEN_CONNECTIONS, MAX_QUEUE_SECONDS, MAX_REQUEST_HEAD_SECONDS, MAX_RESPONSE_SECONDS

_FULL = b"too many connections; try again in %d s\n" % MAX_QUEUE_SECONDS
_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n"
    b"retry-after: %d\r\ncontent-length: %d\r\n\r\n%s" % (MAX_QUEUE_SECONDS, len(_FULL), _FULL)
)


class ServerConnection(H11Protocol):
    """`idle` has the connections without a request, the longest idle first. All connections share it."""

    most = MAX_OPEN_CONNECTIONS
    head_seconds: float = MAX_REQUEST_HEAD_SECONDS
    response_seconds: float = MAX_RESPONSE_SECONDS
    idle: dict["ServerConnection", None]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._timer: asyncio.TimerHandle | None = None
        self._slow_reader: asyncio.TimerHandle | None = None
        # Whether it has ever had a request.
        self._asked = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()
        if len(self.connections) <= self.most:
            return
        oldest = next(iter(self.idle))
        if not oldest._asked:
            # Its first request may be on the way; all others have one, or came later.
            oldest.transport.write(_REFUSAL)
        oldest._give_up()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_slow_reader()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        try:
            super().data_received(data)
        except h11.LocalProtocolError:
            # Bytes that aren't HTTP, during a response: uvicorn would begin another response.
            self.transport.abort()

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._asked = True
            self._stop_waiting()

    def on_response_complete(self) -> None:
        # Must come first: the next request may already have arrived.
        self._wait_for_head()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop_slow_reader()
        self._slow_reader = self.loop.call_later(self.response_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_slow_reader()
        super().resume_writing()

    def _wait_for_head(self) -> None:
        """Starts now; single bytes don't extend it. The body of a refused request is read and dropped meanwhile, since
        a reset would make a client that is still sending lose the response."""
        self._stop_waiting()
        self.idle[self] = None
        self._timer = self.loop.call_later(self.head_seconds, self._give_up)

    def _stop_waiting(self) -> None:
        self.idle.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop_slow_reader(self) -> None:
        if self._slow_reader is not None:
            self._slow_reader.cancel()
            self._slow_reader = None

    def _give_up(self) -> None:
        self._stop_waiting()
        self.transport.close()
        # Closes once the rest of the last response is sent.
        self._timer = self.loop.call_later(self.response_seconds, self.transport.abort)


def connections(open_files: int | None = None) -> type[ServerConnection]:
    """Connections of one server. `open_files` is the system's limit; half of it is left for everything else."""
    most = MAX_OPEN_CONNECTIONS if open_files is None else max(1, min(MAX_OPEN_CONNECTIONS, open_files // 2))
    return type("ServerConnection", (ServerConnection,), {"idle": {}, "most": most})
