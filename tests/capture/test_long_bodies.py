"""Frames too long to become Python values, columns or names are listed, and the reason is given."""

from io import BytesIO

import pytest

from kafkascope import limits
from kafkascope.capture.reader import decode_messages, read
from kafkascope.codec.frame import encode_frame
from kafkascope.codec.message import encode
from kafkascope.columnar.decode import ERROR
from tests.hostile.test_bounds_codec import uvarint
from tests.support.packet_build import Talk, pcap
from tests.support.traffic import request, response

HEAD = {"correlationId": 9, "clientId": "app"}


def with_length(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def recording(request_bytes: bytes, answer: bytes) -> BytesIO:
    talk = Talk(segment_bytes=60_000, step_ns=1_000).open()
    talk.say(0, request("ApiVersions", 3, 1)).say(1, response("ApiVersions", 3, 1))
    talk.say(0, request_bytes).say(1, answer)
    talk.say(0, request("Metadata", 1, 10)).say(1, response("Metadata", 1, 10)).close()
    return BytesIO(pcap(talk.packets))


def test_an_odd_frame_beyond_its_cap_is_undecoded_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """MAX_CAREFUL_FRAME_BYTES: with a byte too many, which only the careful codec reads."""
    request_bytes = encode_frame("MetadataRequest", 1, {"topics": [{"name": "x" * 900}]}, HEAD, length=False)
    answer = encode_frame("MetadataResponse", 1, {}, {"correlationId": 9})
    for most, status in ((len(request_bytes) + 1, "answered"), (len(request_bytes), "undecoded")):
        for module in ("facts", "exchange", "name_cache"):
            monkeypatch.setattr(f"kafkascope.capture.exchanges.{module}.MAX_CAREFUL_FRAME_BYTES", most)
        _, odd, following = read(recording(with_length(request_bytes + b"\0"), answer))
        assert (odd.status, following.status) == (status, "answered")
    assert (
        odd.problem is not None
        and f"a frame of {len(request_bytes) + 1} bytes that Kafka would write differently" in odd.problem
        and f"; {len(request_bytes)} is the limit" in odd.problem
    )


def test_a_body_beyond_its_cap_is_no_table_and_says_so() -> None:
    """MAX_BODY_BYTES"""
    topic = bytes.fromhex("0000 02 61 00 01 80000000 00".replace(" ", ""))
    count = limits.MAX_BODY_BYTES // len(topic) + 1
    body = bytes(4) + b"\x01\x00" + b"\xff" * 4 + uvarint(count + 1) + topic * count + bytes(4) + b"\0"
    request_bytes = encode_frame("MetadataRequest", 9, {"topics": None}, HEAD)
    answer = with_length((9).to_bytes(4, "big") + b"\0" + body)
    rows = [
        row
        for table in decode_messages(recording(request_bytes, answer))
        if table.name == "MetadataResponse"
        for row in table.table.select(["api_version", ERROR]).to_pylist()
    ]
    by_version = {row["api_version"]: row[ERROR] for row in rows}
    assert by_version[1] is None
    assert f"a body of more than {limits.MAX_BODY_BYTES} bytes" in by_version[9]


@pytest.mark.parametrize(("topics", "records"), [(6_000_000, 0), (1, limits.MAX_BODY_BYTES + 1)])
def test_records_do_not_count_and_empty_topics_do(topics: int, records: int) -> None:
    """MAX_BODY_BYTES"""
    named = {"name": "", "partitionData": [{"index": 0, "records": bytes(records)}] if records else []}
    body = encode("ProduceRequest", 9, {"acks": 1, "timeoutMs": 1, "topicData": [named]})
    if topics > 1:
        # The array's count of one, and its one topic: an empty name, no partitions, no tags; the message's tags.
        assert body.endswith(bytes.fromhex("02 010100 00"))
        body = body[:-5] + uvarint(topics + 1) + bytes.fromhex("010100") * topics + b"\0"
    header = encode_frame("ProduceRequest", 9, {"topicData": []}, HEAD, length=False)
    empty = encode("ProduceRequest", 9, {"topicData": []})
    request_bytes = with_length(header[: -len(empty)] + body)
    answer = encode_frame("ProduceResponse", 9, {}, {"correlationId": 9})
    (row,) = [
        row
        for table in decode_messages(recording(request_bytes, answer))
        if table.name == "ProduceRequest"
        for row in table.table.select([ERROR]).to_pylist()
    ]
    assert (row[ERROR] is None) == bool(records), row


def test_an_exchange_with_very_many_names_is_listed_without() -> None:
    """MAX_NAMES"""
    count = limits.MAX_NAMES + 10
    names = b"".join(b"\0\4%04x" % (n & 0xFFFF) for n in range(count))
    request_bytes = encode_frame("MetadataRequest", 1, {"topics": []}, HEAD, length=False)
    answer = encode_frame("MetadataResponse", 1, {}, {"correlationId": 9})
    _, many, following = read(recording(with_length(request_bytes[:-4] + count.to_bytes(4, "big") + names), answer))
    assert (many.status, many.topics) == ("answered", ())
    assert following.status == "answered"
