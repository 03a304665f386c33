"""Saves and restores the frames without a partner between two runs. Their bytes are read again."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.flow import Connection, Frames
from kafkascope.capture.exchanges.exchanges import Ends, Pairer
from kafkascope.capture.exchanges.identity import address_text, connection_name, exchange_ids
from kafkascope.capture.frames.headers import Frame, read_headers
from kafkascope.capture.resume.places import earliest
from kafkascope.capture.resume.reread import RereadRanges
from kafkascope.capture.resume.state import Carried, Ints
from kafkascope.capture.tcp.stream_table import Stream

Place = Callable[[int], int]
_KEPT = (
    Frame.KIND,
    Frame.RESPONSE,
    Frame.OFFSET,
    Frame.SIZE,
    Frame.FIRST_NS,
    Frame.LAST_NS,
    Frame.PACKET,
    Frame.AFTER_LOSS,
)


def stream_of(connection: Connection, response: int) -> int:
    return 2 * connection.number + ((connection.client or 0) ^ response)


def waiting_of(
    pairer: Pairer, connections: Sequence[Connection], late: dict[int, npt.NDArray[np.int64]]
) -> dict[int, list[Ints]]:
    """The frames without a partner by connection, each with the first packet that it needs."""
    rows_by_connection: dict[int, list[Ints]] = {}
    for row in pairer._waiting.tolist():
        kept = tuple(row[column] for column in _KEPT)
        stream = stream_of(connections[row[Frame.CONNECTION]], row[Frame.RESPONSE])
        first = earliest(
            late.get(stream), row[Frame.OFFSET], row[Frame.OFFSET] + 4 + row[Frame.SIZE], row[Frame.PACKET]
        )
        missing = (row[Frame.MISSING],) if row[Frame.MISSING] else ()
        rows_by_connection.setdefault(row[Frame.CONNECTION], []).append((*kept, first, *missing))
    return rows_by_connection


def waiting_ids(pairer: Pairer) -> set[str]:
    """The ids of exchanges whose frame has no partner yet."""
    rows = pairer._waiting
    hashes = np.array([pairer.ends[number].number for number in rows[:, Frame.CONNECTION].tolist()], np.uint64)
    return set(exchange_ids(hashes, rows[:, Frame.OFFSET].copy(), rows[:, Frame.RESPONSE].copy()).to_pylist())


def add_waiting_ranges(carried: Carried, number: int, flow: int, place: Place, ranges: RereadRanges) -> None:
    for _, response, offset, size, _, _, _, _, first, *_ in carried.waiting:
        direction = (carried.client or 0) ^ response
        base = carried.streams[direction].row[Stream.BASE]
        ranges.add(2 * number + direction, flow, base, offset + 4, offset + 4 + size, place(first))


def restore_ends(pairer: Pairer, carried: Carried) -> None:
    if carried.connection_id is None:
        pairer.ends.append(Ends(0, "", ""))
        return
    ends, client = carried.ends, carried.client or 0
    sides = [address_text(ends.address_a, ends.port_a), address_text(ends.address_b, ends.port_b)]
    name = int(carried.connection_id, 16)
    pairer.ends.append(Ends(name, sides[client], sides[1 - client], carried.client_software, carried.software_from))


def connection_id_of(ends: Ends | None) -> str | None:
    return connection_name(ends.number) if ends is not None and ends.client_address else None


def restore_waiting(
    pairer: Pairer, carried: Sequence[Carried], places: Sequence[Place], ranges: RereadRanges
) -> list[tuple[int, str]]:
    """Puts the frames back; (connection, what could not be read again)."""
    rows: list[list[int]] = []
    bodies: list[bytes] = []
    unread: list[tuple[int, str]] = []
    for number, (connection, place) in enumerate(zip(carried, places, strict=True)):
        for kind, response, offset, size, first_ns, last_ns, packet, losses, _, *missing in connection.waiting:
            low = offset + 4
            body = ranges.take(2 * number + ((connection.client or 0) ^ response), low, low + size)
            if body is None:
                unread.append(
                    (number, f"a {'response' if response else 'request'} of {size} bytes without its partner")
                )
                continue
            rows.append([kind, number, response, offset, first_ns, last_ns, place(packet), losses, sum(missing)])
            bodies.append(body)
    if rows:
        numbers = np.array(rows, np.int64)
        ends = np.cumsum([0, *map(len, bodies)])
        columns: dict[str, Any] = {
            "kind": numbers[:, 0].astype(np.uint8), "connection": numbers[:, 1].astype(np.int32),
            "is_response": numbers[:, 2].astype(np.uint8), "offset": numbers[:, 3], "first_ns": numbers[:, 4],
            "time_ns": numbers[:, 5], "packet": numbers[:, 6], "lost": numbers[:, 8],
        }  # fmt: skip
        held = np.frombuffer(bytearray().join(bodies), np.uint8)
        waiting, content = read_headers(Frames(body=held, ends=ends, **columns))
        waiting[:, Frame.AFTER_LOSS] = numbers[:, 7]
        pairer._waiting, pairer._waiting_bytes = waiting, content.second
    return unread
