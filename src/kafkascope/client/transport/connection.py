"""Manages one socket to one node, with several requests in flight and responses in request order. However a call ends,
the stream is never left half read: unwanted responses are dropped, or the socket is closed."""

import asyncio
import contextlib
import ssl
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from kafkascope.client.answer import Answer
from kafkascope.client.settings import Address
from kafkascope.client.transport.dialling import CLOSE_SECONDS
from kafkascope.client.transport.port_hints import identify_server, likely_close_reason
from kafkascope.client.transport.reading import HeavyError, read_response
from kafkascope.codec.frame import encode_frame
from kafkascope.errors import DecodeError, EncodeError, ReachError
from kafkascope.limits import MAX_FRAME_BYTES, MAX_LOGIN_FRAME_BYTES, MAX_RESPONSE_MEMORY_BYTES, MAX_SIDE_BY_SIDE_BYTES

_LAST_CORRELATION_ID = 2**31 - 1
_PIECE_BYTES = 262_144
# Their frames contain passwords and tokens, so no hook, lake or dump gets them.
_SECRET_APIS = frozenset(("SaslAuthenticate", "SaslHandshake"))


class LostError(ReachError):
    """127.0.0.1:9092: closed the connection during a response (12 of 400 bytes)"""

    # Lost at the first request after ApiVersions: once, the broker is shutting down; repeatedly, it requires a login.
    early = False
    # The bytes aren't Kafka, and a retry won't change that.
    final = False


@dataclass(slots=True)
class _PendingRequest:
    """A pending request. `correlation_id` is None for a SASL token without a header (SaslHandshake v0)."""

    correlation_id: int | None
    future: asyncio.Future[bytes]
    # Set when the response is decoded or unwanted: a large one is kept until then, and the next one waits.
    released: asyncio.Event


class Connection:
    """`versions` are the node's, set by negotiation: API key to (first, last). All connections to a cluster share
    `large`, the lock for reading a large response."""

    def __init__(
        self,
        address: Address,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        client_id: str,
        *,
        tls: bool = False,
        sasl: bool = False,
        large: asyncio.Lock | None = None,
    ) -> None:
        self.address = address
        self.client_address = _own_address(writer)
        self.connected_at = time.time_ns()
        self.client_id = client_id
        self.versions: Mapping[int, tuple[int, int]] = {}
        # Loop times at which to log in again, and after which the broker closes the connection (KIP-368).
        self.log_in_at: float | None = None
        self.log_in_by: float | None = None
        self.log_in = asyncio.Lock()
        self._reader = reader
        self._writer = writer
        self._tls = tls
        self._sasl = sasl
        self._large = large or asyncio.Lock()
        self._pending: deque[_PendingRequest] = deque()
        self._greeted = False
        self._max_bytes = MAX_LOGIN_FRAME_BYTES
        self._responses = 0
        self._correlation_id = 0
        self._retired = False
        self._error: str | None = None
        self._final = False
        self._task = asyncio.create_task(self._read(), name=f"kafkascope reads {address}")

    @property
    def usable(self) -> bool:
        """Whether a new call may use it."""
        return self._error is None and not self._retired and not self._writer.is_closing()

    @property
    def idle(self) -> bool:
        return not self._pending

    def greet(self, versions: Mapping[int, tuple[int, int]]) -> None:
        """Records that it's a Kafka node and serves these versions."""
        self.versions = versions
        self._greeted = True
        self._responses = 0

    def logged_in(self) -> None:
        """Logged in, or no login needed: from now on responses may have Kafka's full size."""
        self._max_bytes = MAX_FRAME_BYTES

    async def call(
        self, api: str, version: int, value: Mapping[str, Any], most: Callable[[], int] | None = None
    ) -> Answer:
        """The caller sets the time limit. EncodeError names a mistake in `value`; nothing is sent then. `most` returns
        the memory that the response may take; it's called on arrival, since others may have arrived meanwhile."""
        correlation_id = self.next_correlation_id()
        header = {"correlationId": correlation_id, "clientId": self.client_id}
        frame = encode_frame(f"{api}Request", version, dict(value), header, length=False)
        answered = not (api == "Produce" and value.get("acks", 0) == 0)
        sent_at = time.time_ns()
        response, pending = await self._exchange(frame, correlation_id, answered)
        received_at = time.time_ns()
        if pending is None:
            shown = (b"", b"") if api in _SECRET_APIS else (frame, response)
            return Answer(
                api, version, {}, None, self.address, *shown, sent_at, received_at, correlation_id, True, (),
                self.client_address, self.connected_at,
            )  # fmt: skip
        try:
            read = await read_response(api, version, response, MAX_RESPONSE_MEMORY_BYTES if most is None else most())
        except HeavyError as error:
            raise HeavyError(f"{api} v{version} at {self.address}: {error}") from None
        except DecodeError as error:
            raise DecodeError(f"{api} v{version} at {self.address}: the bytes aren't a response: {error}") from None
        finally:
            pending.released.set()
        shown = (b"", b"") if api in _SECRET_APIS else (frame, read.frame)
        return Answer(
            api, read.version, read.value, None, self.address, *shown, sent_at, received_at, correlation_id,
            read.exact, read.reasons, self.client_address, self.connected_at, read.memory, read.left_out,
        )  # fmt: skip

    def next_correlation_id(self) -> int:
        correlation_id = self._correlation_id
        self._correlation_id = 0 if correlation_id == _LAST_CORRELATION_ID else correlation_id + 1
        return correlation_id

    async def send(self, frame: bytes, *, answered: bool = True) -> bytes:
        """Sends a whole request and returns the whole response, both without length. The correlation id is the
        request's."""
        if len(frame) < 8:
            raise EncodeError(f"a request has a header of at least 8 bytes; these are {len(frame)}")
        return await self._bytes(frame, int.from_bytes(frame[4:8], "big", signed=True), answered)

    async def token(self, data: bytes) -> bytes:
        """Exchanges a SASL token as after SaslHandshake v0: a length and the token without a header, both ways."""
        return await self._bytes(data, None, True)

    async def _bytes(self, content: bytes, correlation_id: int | None, answered: bool) -> bytes:
        response, pending = await self._exchange(content, correlation_id, answered)
        if pending is not None:
            pending.released.set()
        return response

    async def _exchange(
        self, content: bytes, correlation_id: int | None, answered: bool
    ) -> tuple[bytes, _PendingRequest | None]:
        """The receiver of a response sets `released` when it's decoded."""
        if len(content) > MAX_FRAME_BYTES:
            raise EncodeError(f"the request has {len(content)} bytes; brokers accept {MAX_FRAME_BYTES}")
        if not self.usable:
            raise self._lost()
        # One write: a call that is cancelled while bytes drain leaves no half request in the stream.
        self._writer.write(len(content).to_bytes(4, "big") + content)
        if not answered:
            await self._drain()
            if self._error is not None:
                raise self._lost()
            return b"", None
        pending = _PendingRequest(correlation_id, asyncio.get_running_loop().create_future(), asyncio.Event())
        self._pending.append(pending)
        try:
            await self._drain()
            return await pending.future, pending
        except asyncio.CancelledError:
            pending.released.set()
            # Out of time, or unwanted. Responses come in order, so all later ones would wait for this one.
            pending.future.cancel()
            self._retire()
            raise

    async def _drain(self) -> None:
        """Waiting calls learn of a failure by their futures."""
        try:
            await self._writer.drain()
        except OSError as error:
            self._end(_broken_connection(error, self.address.host))

    def _retire(self) -> None:
        """Takes no new calls; pending ones get their responses, then the socket closes."""
        self._retired = True
        if all(pending.future.done() for pending in self._pending):
            self._end("closed the connection after the last response")

    async def _read(self) -> None:
        """The reader's task: ends with the stream, for any reason, and fails every waiting call."""
        try:
            while await self._read_frame():
                pass
        except asyncio.IncompleteReadError as error:
            self._end(f"closed the connection during a response ({len(error.partial)} bytes came)")
        except OSError as error:
            self._end(_broken_connection(error, self.address.host))
        except LostError as error:
            self._end(str(error), final=error.final)
        finally:
            # after any other error too, no call waits for a reader that is gone
            self._end("the connection is no longer read")

    async def _read_frame(self) -> bool:
        head = await self._reader.read(4)
        if not head:
            reason = likely_close_reason(self._greeted, self._responses, tls=self._tls, sasl=self._sasl)
            self._end(f"closed the connection; {reason}")
            return False
        if len(head) < 4:
            try:
                head += await self._reader.readexactly(4 - len(head))
            except asyncio.IncompleteReadError as error:
                raise asyncio.IncompleteReadError(head + error.partial, 4) from None
        size = int.from_bytes(head, "big", signed=True)
        if not 0 <= size <= MAX_FRAME_BYTES:
            raise _not_kafka(f"sent no response; it looks like {identify_server(head)}")
        if size > self._max_bytes:
            problem = f"sent a response of {size:,} bytes before the login finished"
            raise _not_kafka(f"{problem}; the limit there is {self._max_bytes:,}")
        if not self._pending:
            raise _not_kafka("sent an unexpected response; it isn't a Kafka broker, or a proxy in between is broken")
        if size <= MAX_SIDE_BY_SIDE_BYTES:
            self._deliver(await self._content(size))
        else:
            async with self._large:
                released = self._deliver(await self._content(size))
                await released.wait()
        return self._error is None

    async def _content(self, size: int) -> bytes:
        """Reads a frame. Memory grows with the received bytes, not with the announced length, and the bytes exist
        once."""
        pieces = BytesIO()
        while pieces.tell() < size:
            piece = await self._reader.read(min(size - pieces.tell(), _PIECE_BYTES))
            if not piece:
                came = f"{pieces.tell()} of {size} bytes"
                raise LostError(f"closed the connection during a response ({came})")
            pieces.write(piece)
        return pieces.getvalue()

    def _deliver(self, frame: bytes) -> asyncio.Event:
        pending = self._pending[0]
        if pending.correlation_id is not None:
            if len(frame) < 4:
                problem = f"sent a response of {len(frame)} bytes; the shortest has 4"
                raise _not_kafka(f"{problem}: it looks like {identify_server(b'')}")
            correlation_id = int.from_bytes(frame[:4], "big", signed=True)
            if correlation_id != pending.correlation_id:
                problem = f"responded with correlation id {correlation_id} instead of {pending.correlation_id}"
                raise _not_kafka(f"{problem}; it isn't a Kafka broker, or a proxy mixes up connections")
        self._pending.popleft()
        self._responses += 1
        if pending.future.done():
            pending.released.set()
        else:
            pending.future.set_result(frame)
        if self._retired:
            self._retire()
        return pending.released

    def _end(self, reason: str, *, final: bool = False) -> None:
        """Fails every waiting call with the first reason."""
        if self._error is None:
            self._error = f"{self.address}: {reason}"
            self._final = final
        while self._pending:
            pending = self._pending.popleft()
            if not pending.future.done():
                pending.future.set_exception(self._lost())
        self._writer.close()

    def _lost(self) -> LostError:
        """A new error for every waiting call."""
        error = LostError(self._error or f"{self.address}: the connection is closed")
        error.final = self._final
        error.early = self._greeted and self._responses == 0 and not self._sasl
        return error

    async def close(self) -> None:
        """Afterwards no task and no socket is left."""
        self._end("the connection is closed")
        self._task.cancel()
        await asyncio.wait([self._task])
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()


def _not_kafka(reason: str) -> LostError:
    error = LostError(reason)
    error.final = True
    return error


def _broken_connection(error: OSError, name: str) -> str:
    """With TLS 1.3 a broker only reports after the handshake that it requires a certificate, or another one."""
    if isinstance(error, ssl.SSLError):
        from kafkascope.client.transport.tls import explain

        return explain(error, name)
    return f"the connection broke ({(error.strerror or str(error) or type(error).__name__).lower()})"


def _own_address(writer: asyncio.StreamWriter) -> str:
    address = writer.get_extra_info("sockname")
    return str(Address(address[0], address[1])) if isinstance(address, tuple) else ""
