"""Recorded captures with a snap length: what has its header in the recording is listed, and its response is its own."""

import struct
from io import BytesIO
from typing import Any

import pytest

from kafkascope.capture.exchanges.exchange_columns import to_arrow
from kafkascope.capture.reader import Reading, read
from tests.captures import NAMES, capture, recording
from tests.support import tshark
from tests.support.packet_build import Talk, pcap
from tests.support.traffic import produce, request, response

HEADER, RECORD = 24, 16
# Two requests of one packet, of which the second begins where the packet is cut: all else is listed.
MOST_WITHOUT_HEADER = 1
_NAMED_BY = ("client_address", "broker_address", "api_key", "api_version", "correlation_id", "request_at")
_SAME = ("response_at", "latency_us", "request_bytes", "response_bytes")


def cut(recorded: bytes, snap_length: int) -> bytes:
    made = bytearray(recorded[:HEADER])
    at = HEADER
    while at < len(recorded):
        seconds, rest, size, original = struct.unpack_from("<IIII", recorded, at)
        kept = min(size, snap_length)
        made += struct.pack("<IIII", seconds, rest, kept, original) + recorded[at + RECORD : at + RECORD + kept]
        at += RECORD + size
    return bytes(made)


def listed(recorded: bytes) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row[name] for name in _NAMED_BY): row for row in rows(recorded) if row["api_key"] is not None}


def rows(recorded: bytes) -> list[dict[str, Any]]:
    return [row for batch in Reading(BytesIO(recorded)).batches() for row in to_arrow(batch).to_pylist()]


def begun_before(recorded: bytes) -> set[tuple[Any, ...]]:
    """Client and broker address of connections that begin with a response: its request isn't in the recording."""
    return {(row["client_address"], row["broker_address"]) for row in rows(recorded) if row["status"] == "answer_only"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("snap_length", [96, 128])
def test_requests_with_a_header_are_listed_with_their_responses(name: str, snap_length: int) -> None:
    whole, part = listed(capture(name)), listed(cut(capture(name), snap_length))
    assert part.keys() <= whole.keys()
    assert len(whole) - len(part) <= MOST_WITHOUT_HEADER
    entered = begun_before(capture(name))
    for key, row in part.items():
        if row["response_at"] is None and key[:2] in entered:
            # Cut, the first response of such a connection can't be told from one to the first request.
            entered.remove(key[:2])
        else:
            assert [row[field] for field in _SAME] == [whole[key][field] for field in _SAME], key
        assert row["status"] in (whole[key]["status"], "undecoded"), key
        # A client id that is cut is not told: half a name is another's.
        assert row["client_id"] in (whole[key]["client_id"], None), key
        assert snap_length == 96 or row["client_id"] == whole[key]["client_id"], key


@pytest.mark.skipif(tshark.MISSING, reason=tshark.REASON)
@pytest.mark.parametrize("name", NAMES)
def test_tshark_names_no_request_of_cut_packets_that_is_not_listed(name: str) -> None:
    """It needs to be told the ports. What it reads into raw SASL tokens and into packets that go on with a frame is
    left out: those are no requests of the whole recording."""
    ports = [port for names in recording(name)["ports"].values() for kind, port in names.items() if kind != "TLS"]
    part = cut(capture(name), 96)
    ours = {key[:5] for key in listed(part)}
    whole = {key[:5] for key in listed(capture(name))}
    theirs = set()
    for (source, target), messages in tshark.dissect(part, ports).items():
        for message in messages:
            numbers = [message.number(f"kafka.{field}") for field in ("request_key", "request.version")]
            theirs.add((source, target, *numbers, message.number("kafka.correlation_id")))
    assert len(theirs & whole) > 100
    assert theirs & whole <= ours


def test_problem_of_a_cut_frame_tells_how_much_is_there() -> None:
    packets = Talk().open().say(0, request("ApiVersions", 3, 1)).say(1, response("ApiVersions", 3, 1)).packets
    (exchange,) = read(BytesIO(pcap(packets, snap_length=80)))
    assert (exchange.api, exchange.api_version, exchange.correlation_id, exchange.status) == (
        "ApiVersions",
        3,
        1,
        "undecoded",
    )
    assert exchange.request_bytes == len(request("ApiVersions", 3, 1))
    assert exchange.problem == f"22 of {len(request('ApiVersions', 3, 1)) - 4} bytes of the request were recorded"


def test_frames_of_many_cut_packets_stay_in_step() -> None:
    made = Talk().open()
    for number in range(4):
        made.say(0, produce(number, 9_000)).say(1, response("Produce", 9, number))
    rows = list(read(BytesIO(pcap(made.close().packets, snap_length=96))))
    assert [(exchange.api, exchange.correlation_id, exchange.request_bytes) for exchange in rows] == [
        ("Produce", number, len(produce(number, 9_000))) for number in range(4)
    ]
    assert all(exchange.latency_us for exchange in rows)
