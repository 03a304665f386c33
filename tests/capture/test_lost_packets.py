"""Recorded captures without one of their packets: what it carried is lost, and nothing else is, and nothing is new.

With `KAFKASCOPE_SOAK` set every packet is left out once, not sixty of them."""

import os
import struct
from io import BytesIO
from typing import Any

import pytest

from kafkascope.capture.exchanges.exchange_columns import to_arrow
from kafkascope.capture.reader import Reading
from tests.captures import NAMES, capture

PACKETS = None if os.environ.get("KAFKASCOPE_SOAK") else 60
HEADER, RECORD = 24, 16
# A request and its answer, as far as a packet carries one of each; a raw token cannot be told without its handshake.
MOST_LOST = 2
# Link, IPv4 and TCP headers with timestamps.
HEADERS_BYTES = 14 + 20 + 32
# By the ends: a connection whose start was not recorded has its name from its first packet.
_NAMED_BY = ("client_address", "broker_address", "correlation_id", "api_key")


def places(recorded: bytes) -> list[tuple[int, int]]:
    """Where packets with bytes of a stream begin and end."""
    places = []
    at = HEADER
    while at < len(recorded):
        (size,) = struct.unpack_from("<I", recorded, at + 8)
        if size > HEADERS_BYTES:
            places.append((at, at + RECORD + size))
        at += RECORD + size
    return places


def answered(recorded: bytes) -> set[tuple[Any, ...]]:
    rows = [row for batch in Reading(BytesIO(recorded)).batches() for row in to_arrow(batch).to_pylist()]
    return {tuple(row[name] for name in _NAMED_BY) for row in rows if row["status"] == "answered"}


@pytest.mark.parametrize("name", NAMES)
def test_lost_packet_costs_what_it_carried(name: str) -> None:
    recorded = capture(name)
    whole = answered(recorded)
    every = places(recorded)
    step = max(1, len(every) // PACKETS) if PACKETS else 1
    for start, end in every[::step]:
        recovered = answered(recorded[:start] + recorded[end:])
        assert recovered <= whole, f"without the packet at {start}"
        assert len(whole) - len(recovered) <= MOST_LOST, f"without the packet at {start}"
