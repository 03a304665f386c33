"""Turns the calls of our own client into exchanges, in the same batches as from a capture of them.

A call has its frames and times, so nothing has to be paired; a request without a response is `unanswered`."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np

from kafkascope.capture.base.flow import Frames
from kafkascope.capture.base.memory_view import Content
from kafkascope.capture.exchanges.exchanges import (
    FIRST_WITH_SOFTWARE,
    Ends,
    ExchangeBatch,
    Recordings,
    make_batch,
    software_of,
)
from kafkascope.capture.exchanges.identity import connection_name, text_hash
from kafkascope.capture.exchanges.pairing import PairStatus
from kafkascope.capture.frames.headers import API_VERSIONS, Frame, FrameRows, read_headers
from kafkascope.capture.frames.scan_program import ScanPrograms

# On the wire, every frame has its length in front.
PREFIX_BYTES = 4
# Connections that are remembered after their end. One that returns after this many others counts from 0 again.
MOST_CONNECTIONS = 10_000

# A connection: our end, the broker's, and when it was opened.
ConnectionKey = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class ClientCall:
    """One call. Frames are without their length; `opened_ns` distinguishes connections that reuse ports."""

    client_address: str
    broker_address: str
    opened_ns: int
    request: bytes
    response: bytes | None
    sent_ns: int
    received_ns: int | None


@dataclass(slots=True)
class CallConnection:
    """A connection that carried calls. `ended` is set by `CallReader.connections`."""

    ends: Ends
    first_ns: int
    last_ns: int
    client_bytes: int = 0
    broker_bytes: int = 0
    ended: bool = False

    @property
    def connection_id(self) -> str:
        return connection_name(self.ends.number)


@dataclass(slots=True)
class CallReader:
    """Connections continue from one batch to the next: the id of an exchange depends on its connection and the number
    of bytes sent on it before, wherever the batches are cut."""

    calls: int = 0  # so far; a call's number is used as its packet
    _connections: dict[ConnectionKey, CallConnection] = field(default_factory=dict)  # in the order of their last use
    _programs: ScanPrograms = field(default_factory=ScanPrograms)

    def batch(self, calls: Iterable[ClientCall], uri: str) -> tuple[ExchangeBatch, list[CallConnection]]:
        """The exchanges, and the connections that carried them."""
        parts: list[bytes] = []
        table: list[tuple[int, int, int, int, int]] = []
        request: list[int] = []
        response: list[int] = []
        used: dict[ConnectionKey, int] = {}
        connections: list[CallConnection] = []
        for place, call in enumerate(sorted(calls, key=lambda call: call.sent_ns), self.calls):
            key = (call.client_address, call.broker_address, call.opened_ns)
            if key not in used:
                used[key] = len(connections)
                connections.append(self._connection(key))
            number = used[key]
            connection = connections[number]
            offset = connection.client_bytes
            request.append(len(parts))
            parts.append(call.request)
            table.append((number, 0, offset, call.sent_ns, place))
            connection.client_bytes += len(call.request) + PREFIX_BYTES
            connection.last_ns = max(connection.last_ns, call.sent_ns, call.received_ns or 0)
            if call.response is None or call.received_ns is None:
                response.append(-1)
                continue
            response.append(len(parts))
            parts.append(call.response)
            table.append((number, 1, offset, call.received_ns, place))
            connection.broker_bytes += len(call.response) + PREFIX_BYTES
        self.calls += len(request)
        frames = Frames.whole(parts, table)
        rows, content = read_headers(frames)
        ends = [connection.ends for connection in connections]
        _learn_software(content, rows, ends)
        responses = np.array(response, dtype=np.int64)
        status = np.where(responses >= 0, PairStatus.ANSWERED, PairStatus.UNANSWERED).astype(np.uint8)
        batch = make_batch(
            rows, np.array(request, dtype=np.int64), responses, status, ends, Recordings([uri], [0]),
            self._programs, names=False, sized=True, content=content,
        )  # fmt: skip
        return batch, connections

    def connections(
        self, still_open: Collection[ConnectionKey] | None
    ) -> tuple[list[CallConnection], list[CallConnection]]:
        """(connections that have ended since the last call, those that may continue). None means that any may
        continue."""
        ended: list[CallConnection] = []
        lasting: list[CallConnection] = []
        for key, connection in self._connections.items():
            if not connection.ended:
                connection.ended = still_open is not None and key not in still_open
                (ended if connection.ended else lasting).append(connection)
        over = [key for key, connection in self._connections.items() if connection.ended]
        for key in over[: max(0, len(self._connections) - MOST_CONNECTIONS)]:
            del self._connections[key]
        return ended, lasting

    def _connection(self, key: ConnectionKey) -> CallConnection:
        connection = self._connections.pop(key, None)
        if connection is None:
            client, broker, opened_ns = key
            ends = Ends(text_hash(f"{client}-{broker}-{opened_ns}".encode()), client, broker)
            connection = CallConnection(ends, opened_ns, opened_ns)
        connection.ended = False
        self._connections[key] = connection
        return connection


def _learn_software(content: Content, rows: FrameRows, ends: list[Ends]) -> None:
    telling = (rows[:, Frame.RESPONSE] == 0) & (rows[:, Frame.BODY_AT] > 0) & (rows[:, Frame.API_KEY] == API_VERSIONS)
    telling &= rows[:, Frame.VERSION] >= FIRST_WITH_SOFTWARE
    columns = [Frame.CONNECTION, Frame.OFFSET, Frame.FRAME_AT, Frame.SIZE, Frame.CLIENT_AT, Frame.CLIENT_SIZE]
    for number, offset, at, size, client_at, client_size in rows[telling][:, columns].tolist():
        known = ends[number]
        if known.software is None:
            known.software = software_of(content.bytes(at, size), client_at + client_size if client_at >= 0 else -1)
            known.software_from = offset
