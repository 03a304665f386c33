"""Whole recordings to exchanges: captures and logs agree, files may be cut anywhere, bodies become tables."""

from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafkascope.capture.exchanges.exchange import Exchange
from kafkascope.capture.exchanges.exchange_columns import SCHEMA
from kafkascope.capture.reader import Reading, decode_messages, read, read_batches
from kafkascope.codec.frame import encode_frame
from kafkascope.errors import InputError
from tests.captures import HERE, NAMES, capture
from tests.support.packet_build import Talk, pcap

COLUMNS = (
    "exchange_id connection_id capture_uri packet request_at response_at latency_us long_poll max_wait_ms api_key api"
    " api_version correlation_id client_id client_address broker_address client_software request_bytes response_bytes"
    " error_code error throttle_ms status group_id member_id"
).split()


def ask(correlation: int, api: str = "Heartbeat", version: int = 4, **value: Any) -> bytes:
    return encode_frame(f"{api}Request", version, value, {"correlationId": correlation, "clientId": "app"})


def answer(correlation: int, api: str = "Heartbeat", version: int = 4, **value: Any) -> bytes:
    return encode_frame(f"{api}Response", version, value, {"correlationId": correlation})


def talk(count: int = 5) -> Talk:
    software = {"clientSoftwareName": "app", "clientSoftwareVersion": "1"}
    made = Talk().open().say(0, ask(0, "ApiVersions", 3, **software)).say(1, answer(0, "ApiVersions", 3))
    for number in range(1, count):
        made.say(0, ask(number, groupId="g", memberId="m")).say(1, answer(number))
    return made


def identity(exchange: Exchange) -> tuple[Any, ...]:
    """What a capture and a request log both tell."""
    return (
        exchange.client_address,
        exchange.broker_address,
        exchange.correlation_id,
        exchange.api,
        exchange.api_version,
        exchange.client_id,
    )


def test_the_columns_are_those_of_the_table() -> None:
    (batch,) = read_batches(BytesIO(pcap(talk().packets)))
    assert batch.schema.names == COLUMNS == SCHEMA.names
    assert batch.num_rows == 5
    batch.validate(full=True)


def test_a_file_given_by_path_handle_or_pipe_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(talk().packets))
    ids = [exchange.exchange_id for exchange in read(path)]
    assert len(ids) == 5
    assert [exchange.exchange_id for exchange in read(str(path))] == ids
    assert [exchange.exchange_id for exchange in read([path])] == ids
    with path.open("rb") as file:
        assert [exchange.exchange_id for exchange in read(file)] == ids


def test_a_connection_goes_on_from_one_file_to_the_next(tmp_path: Path) -> None:
    packets = talk(20).packets
    whole = [(exchange.exchange_id, exchange.packet) for exchange in read(BytesIO(pcap(packets)))]
    assert len(whole) == 20
    for cut in (4, 9, 17, len(packets) - 1):
        paths = [tmp_path / "a.pcap", tmp_path / "b.pcap"]
        for path, part in zip(paths, (packets[:cut], packets[cut:]), strict=True):
            path.write_bytes(pcap(part))
        exchanges = list(read(paths))
        assert [exchange.exchange_id for exchange in exchanges] == [name for name, _ in whole], cut
        for exchange, (_, packet) in zip(exchanges, whole, strict=True):
            assert (exchange.capture_uri, exchange.packet) == (
                (str(paths[0]), packet) if packet < cut else (str(paths[1]), packet - cut)
            )


def test_requests_without_an_answer_stand_in_their_places() -> None:
    made = talk(3).say(0, ask(7)).close()
    other = Talk(client=("10.0.0.9", 50_000), time_ns=made.time_ns)
    other.open().say(0, ask(1)).say(1, answer(1)).say(0, ask(2)).say(1, answer(2))
    exchanges = list(read(BytesIO(pcap(made.packets + other.packets))))
    times = [exchange.request_at or exchange.response_at for exchange in exchanges]
    assert times == sorted(times, key=lambda at: at.timestamp() if at else 0)
    assert Counter(exchange.status for exchange in exchanges) == {"answered": 5, "unanswered": 1}


def test_bodies_are_tables_keyed_by_exchange() -> None:
    recorded = pcap(talk(6).packets)
    tables = {message.name: message.table for message in decode_messages(BytesIO(recorded))}
    assert set(tables) == {"ApiVersionsRequest", "ApiVersionsResponse", "HeartbeatRequest", "HeartbeatResponse"}
    requests = tables["HeartbeatRequest"]
    ids = [exchange.exchange_id for exchange in read(BytesIO(recorded)) if exchange.api == "Heartbeat"]
    assert requests.column("exchange_id").to_pylist() == ids
    assert requests.column("group_id").to_pylist() == ["g"] * 5
    assert set(requests.column("api_version").to_pylist()) == {4}
    assert requests.column("_error").null_count == 5


def test_the_fallback_answer_of_api_versions_is_in_the_table_as_version_0() -> None:
    """protocol note 3."""
    made = talk(3).say(0, ask(9, "ApiVersions", 4))
    made.say(1, answer(9, "ApiVersions", 0, errorCode=35, apiKeys=[{"apiKey": 18, "maxVersion": 3}]))
    tables = [t.table for t in decode_messages(BytesIO(pcap(made.packets))) if t.name == "ApiVersionsResponse"]
    (fallback,) = (row for table in tables for row in table.to_pylist() if row["api_version"] == 0)
    assert fallback["error_code"] == 35
    assert fallback["_error"] is None


def test_the_request_within_an_envelope_is_in_its_own_table_under_the_same_exchange() -> None:
    inner = ask(3, "DeleteTopics", 6, topics=[{"name": "old"}])[4:]
    made = talk(3).say(0, ask(9, "Envelope", 0, requestData=inner, requestPrincipal=b"", clientHostAddress=b""))
    made.say(1, answer(9, "Envelope", 0, responseData=answer(3, "DeleteTopics", 6)[4:]))
    recorded = pcap(made.packets)
    tables = {message.name: message.table for message in decode_messages(BytesIO(recorded))}
    (outer,) = (exchange for exchange in read(BytesIO(recorded)) if exchange.api == "Envelope")
    for name in ("EnvelopeRequest", "EnvelopeResponse", "DeleteTopicsRequest", "DeleteTopicsResponse"):
        assert tables[name].column("exchange_id").to_pylist() == [outer.exchange_id], name
    assert tables["DeleteTopicsRequest"].column("topics").to_pylist()[0][0]["name"] == "old"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"hello\nworld\n", "it is text without a line of a broker's request log"),
        (bytes(range(256)), "it starts neither as pcap nor as pcapng"),
    ],
    ids=["empty", "text", "bytes"],
)
def test_what_is_no_recording_is_said(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(content)
    for source in (path, BytesIO(content)):
        with pytest.raises(InputError, match=reason):
            list(read(source))
    with pytest.raises(InputError, match="is a directory"):
        list(read(tmp_path))


def test_the_account_tells_what_was_read() -> None:
    made = talk(4).say(0, ask(9)).close()
    reading = Reading(BytesIO(pcap(made.packets)))
    list(reading.batches())
    account = reading.account
    assert (account.files, account.packets, account.exchanges) == (1, len(made.packets), 5)
    assert account.statuses == {"answered": 4, "unanswered": 1}
    assert account.protocols().keys() == {"kafka"}


@pytest.mark.parametrize("name", NAMES)
def test_every_exchange_of_a_recorded_capture_is_read(name: str) -> None:
    """All plain traffic of the incident decodes, both bodies."""
    exchanges = list(read(BytesIO(capture(name))))
    assert len(exchanges) > 100
    assert not [identity(exchange) for exchange in exchanges if exchange.status == "undecoded"]
    for exchange in exchanges:
        if exchange.api_key is not None:
            assert exchange.request is not None and (
                exchange.response_frame is None or exchange.response is not None
            ), identity(exchange)


@pytest.mark.parametrize("name", NAMES)
def test_tables_of_a_recorded_capture_have_a_row_a_body_and_no_error(name: str) -> None:
    path = HERE / name / "capture.pcap.xz"
    rows: Counter[str] = Counter()
    for message in decode_messages(path):
        assert isinstance(message.table, pa.Table)
        assert message.table.column("_error").null_count == message.table.num_rows, message.name
        rows[message.name] += message.table.num_rows
    expected: Counter[str] = Counter()
    for exchange in read(path):
        expected[f"{exchange.api}Request"] += exchange.request is not None
        expected[f"{exchange.api}Response"] += exchange.response is not None
        expected.update(frame.name for frame in exchange.inner() if frame.name)
    assert rows == +expected
