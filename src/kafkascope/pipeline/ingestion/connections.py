"""Connections of a task in, rows of the lake's table out."""

from collections.abc import Callable, Iterable

import pyarrow as pa

from kafkascope.capture.base.flow import Connection
from kafkascope.capture.exchanges.exchanges import Ends
from kafkascope.capture.exchanges.identity import address_text, connection_hash, connection_name
from kafkascope.lake.tables import CONNECTIONS

# Rows of connections that ended, until they are written.
MOST_KEPT = 8_192


class GoneConnections:
    """Connections that a task forgets before its end, as rows that `write` takes in portions."""

    def __init__(self, write: Callable[[pa.Table], None]) -> None:
        self._write = write
        self._kept: list[tuple[Connection, Ends]] = []

    def add(self, one: Connection, ends: Ends) -> None:
        self._kept.append((one, ends))
        if len(self._kept) >= MOST_KEPT:
            self.flush()

    def flush(self) -> None:
        if self._kept:
            self._write(connection_rows(self._kept))
            self._kept = []


def connection_rows(connections: Iterable[tuple[Connection, Ends | None]]) -> pa.Table:
    """The client is the side that requests come from, or the one that opened the connection, or the higher port."""
    rows = [_row(one, ends.software if ends is not None else None) for one, ends in connections]
    return pa.Table.from_pylist(rows, schema=pa.schema([(f.name, _plain(f.type)) for f in CONNECTIONS])).cast(
        CONNECTIONS
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_timestamp(kind) else kind


def _row(one: Connection, software: str | None) -> dict[str, object]:
    client = one.client
    if client is None:
        client = one.opener if one.opener is not None else int(one.ends.port_a < one.ends.port_b)
    sides = [address_text(one.ends.address_a, one.ends.port_a), address_text(one.ends.address_b, one.ends.port_b)]
    return {
        "connection_id": connection_name(connection_hash(one)),
        "client_address": sides[client],
        "broker_address": sides[1 - client],
        "protocol": one.protocol,
        "client_software": software,
        "opened": one.opened,
        "closed": one.closed,
        "first_at": one.first_ns // 1000,
        "last_at": one.last_ns // 1000,
        "closed_at": None if one.closed_ns is None else one.closed_ns // 1000,
        "client_bytes": one.bytes_seen[client],
        "broker_bytes": one.bytes_seen[1 - client],
        "client_gap_bytes": one.gap_bytes[client],
        "broker_gap_bytes": one.gap_bytes[1 - client],
        "retransmitted_bytes": one.retransmitted_bytes,
        "duplicated_bytes": one.duplicated_bytes,
        "conflict_bytes": one.conflict_bytes,
    }
