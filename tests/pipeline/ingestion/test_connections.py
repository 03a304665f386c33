"""Rows of `connections`: when and how a connection ended is told apart from its last packet."""

from datetime import UTC, datetime
from io import BytesIO

from kafkascope.capture.reader import Reading
from kafkascope.pipeline.ingestion.rows.connections import connection_rows
from tests.support.packet_build import Talk, pcap
from tests.support.traffic import request, response


def test_closed_at_is_when_the_end_began_and_null_where_there_is_none() -> None:
    ended = Talk().open().say(0, request("ApiVersions", 3, 1)).say(1, response("ApiVersions", 3, 1))
    closing = len(ended.packets)
    ended.close()
    going_on = Talk(client=("10.0.0.1", 40_001)).open().say(0, request("ApiVersions", 3, 1))
    reading = Reading(BytesIO(pcap([*ended.packets, *going_on.packets])))
    list(reading.batches())
    first, second = connection_rows(zip(reading.account.connections, reading.ends, strict=True)).to_pylist()
    assert (first["closed"], first["closed_at"]) == ("fin", _time(ended.packets[closing][0]))
    assert first["closed_at"] < first["last_at"]
    assert (second["closed"], second["closed_at"]) == (None, None)


def _time(ns: int) -> datetime:
    return datetime.fromtimestamp(ns // 1_000 / 1e6, UTC)
