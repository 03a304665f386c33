"""Writes one row of `connections` for each TCP connection of a task."""

from collections.abc import Callable, Iterable

import pyarrow as pa

from kafkascope.capture.base.flow import Connection
from kafkascope.capture.exchanges.exchanges import Ends
from kafkascope.capture.exchanges.identity import address_text, connection_hash, connection_name
from kafkascope.lake.tables import CONNECTIONS

# Rows of ended connections, until they are written.
_MAX_BUFFERED = 8_192


class EndedConnections:
    """Connections that a task drops before its end, as rows that `write` takes in portions."""

    def __init__(self, write: Callable[[pa.Table], None]) -> None:
        self._write = write
        self._buffered: list[tuple[Connection, Ends]] = []

    def add(self, connection: Connection, ends: Ends) -> None:
        self._buffered.append((connection, ends))
        if len(self._buffered) >= _MAX_BUFFERED:
            self.flush()

    def flush(self) -> None:
        if self._buffered:
            self._write(connection_rows(self._buffered))
            self._buffered = []


def connection_rows(connections: Iterable[tuple[Connection, Ends | None]]) -> pa.Table:
    """The client is the side that requests come from, or the one that opened the connection, or the higher port."""
    rows = [_row(connection, ends.software if ends is not None else None) for connection, ends in connections]
    return pa.Table.from_pylist(rows, schema=pa.schema([(f.name, _plain(f.type)) for f in CONNECTIONS])).cast(
        CONNECTIONS
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_timestamp(kind) else kind


def _row(connection: Connection, software: str | None) -> dict[str, object]:
    ends, client = connection.ends, connection.client
    if client is None:
        client = connection.opener if connection.opener is not None else int(ends.port_a < ends.port_b)
    sides = [address_text(ends.address_a, ends.port_a), address_text(ends.address_b, ends.port_b)]
    return {
        "connection_id": connection_name(connection_hash(connection)),
        "client_address": sides[client],
        "broker_address": sides[1 - client],
        "protocol": connection.protocol,
        "client_software": software,
        "opened": connection.opened,
        "closed": connection.closed,
        "first_at": connection.first_ns // 1000,
        "last_at": connection.last_ns // 1000,
        "closed_at": None if connection.closed_ns is None else connection.closed_ns // 1000,
        "client_bytes": connection.bytes_seen[client],
        "broker_bytes": connection.bytes_seen[1 - client],
        "client_gap_bytes": connection.gap_bytes[client],
        "broker_gap_bytes": connection.gap_bytes[1 - client],
        "retransmitted_bytes": connection.retransmitted_bytes,
        "duplicated_bytes": connection.duplicated_bytes,
        "conflict_bytes": connection.conflict_bytes,
    }
