"""One socket to one node, with several requests in flight and responses in the order of the requests. However a call
ends, the stream is never left half read: what nobody waits for any more is thrown away or the socket closed."""

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
# Their frames hold passwords and tokens: no hook, lake or dump gets to see them.
_SECRET_APIS = frozenset(("SaslAuthenticate", "SaslHandshake"))


class LostError(ReachError):
    """127.0.0.1:9092: closed the connection in the middle of an answer (12 of 400 bytes)"""

    # At the first request behind the greeting: once is a broker that shuts down, again and again one that wants a
    # login.
    early = False
    # What came was no Kafka: it will not be any at the next try.
    final = False


@dataclass(slots=True)
class _PendingRequest:
    """A request under way. `correlation_id` is None for a SASL token without a header (SaslHandshake v0)."""

    correlation_id: int | None
    future: asyncio.Future[bytes]
    # Set when the response is decoded, or nobody wants it: a large one is held up to then, and the next one waits.
    released: asyncio.Event


class Connection:
    """`versions` are what the node serves, set by negotiation: API key to (first, last). `large` is shared by all
    connections to a cluster: who has it reads a large response."""

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
        # Loop time at which to log in again, and after which the broker hangs up (KIP-368).
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
        """Whether a new call may go out on it."""
        return self._error is None and not self._retired and not self._writer.is_closing()

    @property
    def idle(self) -> bool:
        return not self._pending

    def greet(self, versions: Mapping[int, tuple[int, int]]) -> None:
        """It is a Kafka node, and serves these."""
        self.versions = versions
        self._greeted = True
        self._responses = 0

    def logged_in(self) -> None:
        """Or no login is wanted: from now on responses may be as large as Kafka's."""
        self._max_bytes = MAX_FRAME_BYTES

    async def call(
        self, api: str, version: int, value: Mapping[str, Any], most: Callable[[], int] | None = None
    ) -> Answer:
        """Whoever calls sets the time limit. EncodeError names what is wrong in `value`; nothing is sent then. `most`
        returns the memory that the response may take, when it has come: others may have come in the meantime."""
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
            raise DecodeError(f"{api} v{version} at {self.address}: the answer is not one: {error}") from None
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
        """A whole request without its length; the whole answer, likewise. The correlation id is the request's."""
        if len(frame) < 8:
            raise EncodeError(f"a request has a header of at least 8 bytes; these are {len(frame)}")
        return await self._bytes(frame, int.from_bytes(frame[4:8], "big", signed=True), answered)

    async def token(self, data: bytes) -> bytes:
        """A SASL token as it goes after SaslHandshake v0: a length and the token, no header, both ways."""
        return await self._bytes(data, None, True)

    async def _bytes(self, content: bytes, correlation_id: int | None, answered: bool) -> bytes:
        response, pending = await self._exchange(content, correlation_id, answered)
        if pending is not None:
            pending.released.set()
        return response

    async def _exchange(
        self, content: bytes, correlation_id: int | None, answered: bool
    ) -> tuple[bytes, _PendingRequest | None]:
        """Whoever gets a response sets `released` when it is decoded."""
        if len(content) > MAX_FRAME_BYTES:
            raise EncodeError(f"a request of {len(content)} bytes; brokers take {MAX_FRAME_BYTES}")
        if not self.usable:
            raise self._lost()
        # One write: a call that is given up while bytes drain leaves no half request behind.
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
            # Out of time, or not wanted any more. Answers come in order, so whatever follows would wait for this one.
            pending.future.cancel()
            self._retire()
            raise

    async def _drain(self) -> None:
        """Those who wait learn of a failure by their futures."""
        try:
            await self._writer.drain()
        except OSError as error:
            self._end(_broken_connection(error, self.address.host))

    def _retire(self) -> None:
        """No new calls; those under way get their answers, then the socket closes."""
        self._retired = True
        if all(pending.future.done() for pending in self._pending):
            self._end("gave the connection up")

    async def _read(self) -> None:
        """The reader's task: ends with the stream, for whatever reason, and fails every waiting call."""
        try:
            while await self._read_frame():
                pass
        except asyncio.IncompleteReadError as error:
            self._end(f"closed the connection in the middle of an answer ({len(error.partial)} bytes came)")
        except OSError as error:
            self._end(_broken_connection(error, self.address.host))
        except LostError as error:
            self._end(str(error), final=error.final)
        finally:
            # whatever else went wrong, nobody waits for a reader that is gone
            self._end("nobody reads the connection any more")

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
            raise _not_kafka(f"sent no answer; it looks like {identify_server(head)}")
        if size > self._max_bytes:
            problem = f"sent an answer of {size:,} bytes before the login is finished"
            raise _not_kafka(f"{problem}; {self._max_bytes:,} are the most that is taken there")
        if not self._pending:
            raise _not_kafka(
                "sent an answer that nobody asked for; it is no Kafka broker, or something between is broken"
            )
        if size <= MAX_SIDE_BY_SIDE_BYTES:
            self._deliver(await self._content(size))
        else:
            async with self._large:
                released = self._deliver(await self._content(size))
                await released.wait()
        return self._error is None

    async def _content(self, size: int) -> bytes:
        """Of a frame. Memory grows with what comes, not with what the length says, and the bytes are there once."""
        pieces = BytesIO()
        while pieces.tell() < size:
            piece = await self._reader.read(min(size - pieces.tell(), _PIECE_BYTES))
            if not piece:
                came = f"{pieces.tell()} of {size} bytes"
                raise LostError(f"closed the connection in the middle of an answer ({came})")
            pieces.write(piece)
        return pieces.getvalue()

    def _deliver(self, frame: bytes) -> asyncio.Event:
        pending = self._pending[0]
        if pending.correlation_id is not None:
            if len(frame) < 4:
                problem = f"sent an answer of {len(frame)} bytes; the shortest has 4"
                raise _not_kafka(f"{problem}: it looks like {identify_server(b'')}")
            correlation_id = int.from_bytes(frame[:4], "big", signed=True)
            if correlation_id != pending.correlation_id:
                problem = f"answered correlation id {correlation_id} where {pending.correlation_id} was asked"
                raise _not_kafka(f"{problem}; it is no Kafka broker, or a proxy mixes connections up")
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
        """The first reason counts; every waiting call fails with it."""
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
        """Nothing of it is left afterwards: no task, no socket."""
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
    """With TLS 1.3 a broker says only behind the handshake that it wants another certificate, or one at all."""
    if isinstance(error, ssl.SSLError):
        from kafkascope.client.transport.tls import explain

        return explain(error, name)
    return f"the connection broke ({(error.strerror or str(error) or type(error).__name__).lower()})"


def _own_address(writer: asyncio.StreamWriter) -> str:
    address = writer.get_extra_info("sockname")
    return str(Address(address[0], address[1])) if isinstance(address, tuple) else ""
