"""tshark reads the recorded captures too: it finds the same messages, and the same fields where it knows the version.

SASL tokens it takes for requests (protocol note 6): of those only the lengths are compared."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from kafkascope.capture.exchanges.exchange import Exchange
from kafkascope.codec.frame import DecodedFrame, decode_frame
from kafkascope.codec.records.record_data import decode_records
from tests.captures import NAMES, capture, recording
from tests.support import tshark
from tests.support.recorded import exchanges, prefixed
from tests.support.tshark import Direction, Leaf, Message

pytestmark = pytest.mark.skipif(tshark.MISSING, reason=tshark.REASON)

# Where tshark has the version and goes wrong all the same, and the last version in which it does.
ASTRAY = {
    # 4.0 takes the length of classic bytes for two bytes; they have four.
    "JoinGroup": 5,
    "SyncGroup": 3,
    "SaslAuthenticate": 1,
    # It takes the topics for a classic array; this API is flexible from its first version on.
    "ListPartitionReassignments": 0,
}

# One side of an exchange with what tshark makes of it.
Side = tuple[Exchange, bytes, Message]


@cache
def sides(name: str) -> tuple[list[Side], list[Side]]:
    """(requests, responses), met by their place in the stream. Both have the same streams, messages and lengths."""
    ports = [port for names in recording(name)["ports"].values() for kind, port in names.items() if kind != "TLS"]
    theirs = tshark.dissect(capture(name), ports)
    ours: dict[Direction, list[tuple[Exchange, bytes]]] = defaultdict(list)
    requests = set()
    for exchange in exchanges(name):
        to_broker, to_client = (
            (exchange.client_address, exchange.broker_address),
            (exchange.broker_address, exchange.client_address),
        )
        requests.add(to_broker)
        for direction, frame in ((to_broker, exchange.request_frame), (to_client, exchange.response_frame)):
            if frame is not None:
                ours[direction].append((exchange, frame))
    sides_met: tuple[list[Side], list[Side]] = ([], [])
    assert ours.keys() == theirs.keys()
    for direction, frames in ours.items():
        lengths = [len(frame) for _, frame in frames]
        assert lengths == [message.number("kafka.len") for message in theirs[direction]], direction
        met = [(*frame, message) for frame, message in zip(frames, theirs[direction], strict=True)]
        sides_met[direction not in requests].extend(met)
    return sides_met


def is_token(exchange: Exchange) -> bool:
    return exchange.api == "SaslToken"


@pytest.mark.parametrize("name", NAMES)
def test_tshark_sees_the_same_requests(name: str, record_property: Callable[[str, object], None]) -> None:
    """API, version, correlation id and client id of every one, known to it or not."""
    requests = [(exchange, message) for exchange, _, message in sides(name)[0] if not is_token(exchange)]
    for exchange, message in requests:
        numbers = [message.number(f"kafka.{field}") for field in ("request_key", "request.version", "correlation_id")]
        assert numbers == [exchange.api_key, exchange.api_version, exchange.correlation_id], exchange
        assert message.header["kafka.client_id"] == text(exchange.client_id), exchange
    versions = Counter((exchange.api_key, exchange.api_version) for exchange, _ in requests)
    record_property(
        "measured", f"tshark {name}: {len(requests)} requests of {len(versions)} (API, version) pairs agree"
    )
    assert len(requests) > 100


@pytest.mark.parametrize("name", NAMES)
def test_tshark_sees_the_same_responses(name: str, record_property: Callable[[str, object], None]) -> None:
    """Correlation id of every one; API and version where it finds the request. It forgets a request whose body it
    cannot read to the end, and of several with one correlation id (protocol note 12) it keeps the first that it
    could."""
    requests, responses = sides(name)
    asked_in = {exchange.exchange_id: message for exchange, _, message in requests}
    kept: dict[tuple[str, str, int | None], Message] = {}
    for exchange, _, message in requests:
        if not message.malformed:
            kept.setdefault((exchange.client_address, exchange.broker_address, exchange.correlation_id), message)
    outcome: Counter[str] = Counter()
    for exchange, _, message in responses:
        if is_token(exchange):
            continue
        assert message.number("kafka.correlation_id") == exchange.correlation_id, exchange
        own = asked_in.get(exchange.exchange_id)
        taken = message.number("kafka.request_frame")
        if taken is None:
            assert own is None or own.malformed, exchange
            outcome["without a request that tshark could read"] += 1
        elif own is None or taken != own.packet:
            assert taken == kept[exchange.client_address, exchange.broker_address, exchange.correlation_id].packet, (
                exchange
            )
            outcome["given to an earlier request of the same correlation id"] += 1
        else:
            versions = (message.number("kafka.response_key"), message.number("kafka.response.version"))
            assert versions == (exchange.api_key, exchange.api_version), exchange
            outcome["agree"] += 1
    outcomes = ", ".join(f"{count} {what}" for what, count in sorted(outcome.items()))
    record_property("measured", f"tshark {name}: responses: {outcomes}")
    assert outcome["agree"] > 100


@pytest.mark.parametrize("name", NAMES)
def test_tshark_reads_the_same_fields_where_it_knows_the_version(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    """All fields of header and body, none more and none less: from where to where, and what is there. So are all counts
    of topics, partitions and members; of record data the batches' checksums and the number of records."""
    compared: Counter[str] = Counter()
    asked_at = {exchange.exchange_id: message.packet for exchange, _, message in sides(name)[0]}
    for answer, side in enumerate(sides(name)):
        for exchange, data, message in side:
            other = answer and message.number("kafka.request_frame") != asked_at.get(exchange.exchange_id)
            if is_token(exchange) or not message.known or other:
                continue
            response_to = (exchange.api_key or 0, exchange.api_version or 0) if answer else None
            frame = decode_frame(prefixed(data), response_to=response_to, spans=True)
            if not message.whole:
                assert frame.version <= ASTRAY.get(frame.api or "", -1), exchange
                continue
            assert sorted(leaves(frame)) == sorted(theirs(message)), exchange
            assert batches(frame) == (message.records["kafka.batch_crc"], len(message.records["kafka.message_value"]))
            compared[str(frame.name)] += 1
    record_property("measured", f"tshark {name}: {compared.total()} messages of {len(compared)} kinds field by field")
    if name == "clients":
        assert compared.keys() >= set(
            "ApiVersionsResponse FetchRequest FetchResponse JoinGroupRequest JoinGroupResponse MetadataRequest"
            " MetadataResponse OffsetCommitRequest OffsetFetchResponse ProduceRequest ProduceResponse"
            " SyncGroupRequest".split()
        )


LENGTH = 4


def theirs(message: Message) -> Iterator[Leaf]:
    """A response's API and version stand at its length, where they are not."""
    for start, end, shown in message.leaves:
        if start >= LENGTH:
            # Bit fields are shown in hexadecimal, without a sign.
            digits = re.fullmatch(f"0x([0-9a-f]{{{2 * (end - start)}}})", shown)
            signed = int.from_bytes(bytes.fromhex(digits[1]), "big", signed=True) if digits else shown
            yield start, end, str(signed)


def leaves(frame: DecodedFrame) -> Iterator[Leaf]:
    """A string begins at its length. Tags are left out, as tshark keeps them as bytes, and record data."""
    assert frame.body is not None
    for part in (frame.header, frame.body):
        places: dict[str, tuple[int, int]] = {}
        tagged: list[str] = []
        for span in part.spans:
            path, _, piece = span.path.partition("#")
            if piece == "size":
                tagged.append(path)
            elif piece in ("", "length"):
                places[path] = (places.get(path, (span.start,))[0], span.end)
            if span.type == "records" or any(re.match(rf"{re.escape(name)}(\W|$)", path) for name in tagged):
                places.pop(path, None)
        yield from ((*place, text(content(part.value, path))) for path, place in places.items())


def content(value: Any, path: str) -> Any:
    for name, index in re.findall(r"(\w+)|\[(\d+)\]", path):
        value = value[name] if name else value[int(index)]
    return value


def text(value: Any) -> str:
    """As tshark shows it."""
    if value is None:
        return "[ Null ]"
    if isinstance(value, bytes):
        return value.hex(":")
    return str(int(value) if isinstance(value, bool) else value)


def batches(frame: DecodedFrame) -> tuple[list[str], int]:
    """(checksums of the batches, number of records)"""
    assert frame.body is not None
    paths = [span.path for span in frame.body.spans if span.type == "records"]
    record_batches = [batch for path in paths for batch in decode_records(content(frame.body.value, path)).batches]
    return [f"0x{batch.crc:08x}" for batch in record_batches], sum(batch.records_count or 0 for batch in record_batches)
