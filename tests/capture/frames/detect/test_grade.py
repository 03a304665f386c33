"""Kafka is what several frames agree on, on any port; everything else is named and gives no frame."""

import struct
from random import Random

import pytest

from kafkascope.capture.base.flow import (
    FrameKind,
)
from tests.support.flows import Message
from tests.support.framing import Row, Stream, heartbeats, hello, of
from tests.support.hexes import hexes
from tests.support.traffic import REQUEST, RESPONSE, framed, request, response

HELLO_BODY = bytes.fromhex("0303") + bytes(range(32)) + b"\x00" + bytes.fromhex("0002c02f0100")
CLIENT_HELLO = (
    b"\x16\x03\x01"
    + struct.pack(">H", 4 + len(HELLO_BODY))
    + b"\x01\x00"
    + struct.pack(">H", len(HELLO_BODY))
    + HELLO_BODY
)
SERVER_HELLO = (
    b"\x16\x03\x03"
    + struct.pack(">H", 4 + len(HELLO_BODY))
    + b"\x02\x00"
    + struct.pack(">H", len(HELLO_BODY))
    + HELLO_BODY
)


def tls_data(size: int) -> bytes:
    return b"\x17\x03\x03" + struct.pack(">H", size) + Random(size).randbytes(size)


def xdr_record(*words: int) -> bytes:
    """NDMP: a record mark with the last-fragment bit, then sequence, time, type, message, reply sequence, error."""
    body = struct.pack(f">{len(words)}I", *words)
    return struct.pack(">I", 0x8000_0000 | len(body)) + body


TLS: list[Message] = [
    (REQUEST, CLIENT_HELLO),
    (RESPONSE, SERVER_HELLO),
    (REQUEST, tls_data(300)),
    (RESPONSE, tls_data(900)),
]
HTTP: list[Message] = [
    (REQUEST, b"GET /metrics HTTP/1.1\r\nHost: broker\r\n\r\n"),
    (RESPONSE, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
]
REDIS: list[Message] = [
    (REQUEST, b"*2\r\n$3\r\nGET\r\n$5\r\norder\r\n"), (RESPONSE, b"$2\r\n42\r\n"),
    (REQUEST, b"*1\r\n$4\r\nPING\r\n"), (RESPONSE, b"+PONG\r\n"),
]  # fmt: skip
POSTGRESQL: list[Message] = [
    (REQUEST, hexes("""
        00000008             # length 8
        04d2 162f            # SSLRequest
    """)),
    (RESPONSE, b"N"),
    (REQUEST, framed(hexes("""
        0003 0000            # protocol 3.0; Metadata v0 to Kafka's eyes
        75736572 00          # user
        616c696365 00        # alice
        00                   # end
    """))[:3] + b"\x14" + b"\0\3\0\0user\0alice\0\0"),
    (RESPONSE, b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"), (REQUEST, b"Q\0\0\0\x0dselect 1\0"),
]  # fmt: skip
# ActiveMQ: length, type 1 (WireFormatInfo), magic, version; then commands with small numbers in front.
OPENWIRE: list[Message] = [
    *[(way, framed(b"\x01ActiveMQ\0\0\0\x0c\1\0\0\0\x10\0\0\0\0")) for way in (REQUEST, RESPONSE)],
    *[(REQUEST, framed(b"\0\1\0" + bytes([n]) + b"\0\0\0\1\0\4name" + bytes(n))) for n in range(1, 12)],
]  # fmt: skip
# Frames whose first bytes pass for API keys, versions, correlation ids and client ids, one after the other.
LENGTH_PREFIXED: list[Message] = [
    (direction, framed(struct.pack(">hhih", key, 0, number, 4) + b"name" + bytes([number, 7, 9]) * 5))
    for number, key in enumerate((0, 1, 3, 12, 10, 8, 9, 11))
    for direction in (REQUEST, RESPONSE)
]
# Each a Produce request of version 0 for no topic.
ZEROS: list[Message] = [(REQUEST, framed(bytes(20))), (RESPONSE, framed(bytes(20)))] * 8
NDMP: list[Message] = [
    message
    for number in range(1, 9)
    for message in (
        (REQUEST, xdr_record(number, 1_700_000_000, 0, 0x900, 0, 0)),
        (RESPONSE, xdr_record(number, 1_700_000_000, 1, 0x900, number, 0, 0)),
    )
]
NOISE: list[Message] = [(number % 2, Random(number).randbytes(700)) for number in range(40)]

OTHERS = {
    "tls": ("tls", TLS),
    "http": ("http", HTTP),
    "redis": ("other", REDIS),
    "postgresql": ("other", POSTGRESQL),
    "openwire": ("other", OPENWIRE),
    "length prefixed": ("other", LENGTH_PREFIXED),
    "zeros": (None, ZEROS),
    "ndmp": ("other", NDMP),
    "noise": ("other", NOISE),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("size", [1, 5, 10_000])
def test_other_protocols_are_named_and_give_no_frame(name: str, size: int) -> None:
    protocol, messages = OTHERS[name]
    stream = Stream()
    stream.say(*pieces_of(messages, size))
    assert stream.finish() == []
    assert stream.connection.protocol == protocol or (protocol is None and stream.connection.protocol != "kafka")


@pytest.mark.parametrize("name", OTHERS)
def test_other_protocols_give_no_frame_from_the_middle(name: str) -> None:
    _, messages = OTHERS[name]
    for cut in (0, 1, 3, 7):
        stream = Stream(opener=None)
        stream.say((messages[0][0], messages[0][1][cut:] or b"x"), *messages[1:])
        assert stream.finish() == []
        assert stream.connection.protocol != "kafka"


def pieces_of(messages: list[Message], size: int) -> list[Message]:
    return [(way, data[at : at + size]) for way, data in messages for at in range(0, len(data), size)]


def test_tls_is_named_from_the_middle() -> None:
    stream = Stream(opener=None)
    stream.say((REQUEST, tls_data(300) + tls_data(200)))
    assert stream.connection.protocol == "tls"


def test_random_bytes_give_no_frame() -> None:
    for seed in range(60):
        random = Random(seed)
        stream = Stream(opener=random.choice((None, REQUEST)), ports=random.choice(((), (9092,))))
        stream.say(*((random.randrange(2), random.randbytes(random.randint(1, 5_000))) for _ in range(20)))
        assert stream.finish() == [], f"seed {seed}"
        assert stream.connection.protocol != "kafka", f"seed {seed}"


def test_two_requests_that_agree_are_kafka() -> None:
    stream = Stream()
    assert stream.say(*heartbeats(1, 1)) == []
    assert [row.kind for row in stream.say(*heartbeats(2, 1))] == [FrameKind.FRAME, FrameKind.FRAME]


def test_one_request_and_its_answer_are_kafka() -> None:
    stream = Stream()
    assert len(stream.say(*hello())) == 2
    assert (stream.connection.protocol, stream.connection.client) == ("kafka", REQUEST)


def test_answer_to_something_else_proves_nothing() -> None:
    stream = Stream()
    stream.say((REQUEST, request("ApiVersions", 3, 1)), (RESPONSE, response("ApiVersions", 3, 2)))
    assert (stream.connection.protocol, stream.finish()) == ("unknown", [])


def test_requests_without_a_client_id_need_more_agreement() -> None:
    for client_id in (None, ""):
        stream = Stream()
        nameless = [(REQUEST, request("Heartbeat", 4, identity, client_id)) for identity in range(4)]
        assert stream.say(*nameless[:3]) == []
        assert len(stream.say(nameless[3])) == 4


def test_hinted_port_takes_one_frame() -> None:
    stream = Stream(ports=[9092])
    assert len(stream.say(*heartbeats(1, 1))) == 1
    assert stream.connection.protocol == "kafka"


def test_hinted_port_does_not_make_tls_kafka() -> None:
    stream = Stream(ports=[9092])
    stream.say(*TLS)
    assert (stream.connection.protocol, stream.finish()) == ("tls", [])


def test_role_is_found_without_the_start() -> None:
    """Requests may go either way: the lower address need not be the client's."""
    for client in (0, 1):
        stream = Stream(opener=None)
        stream.say(*[(client, data) for _, data in heartbeats(1, 3)], (1 - client, response("Heartbeat", 4, 1)))
        stream.say((1 - client, response("Heartbeat", 4, 2)))
        assert stream.connection.client == client
        frames = stream.finish()
        assert (len(of(frames, REQUEST)), len(of(frames, RESPONSE))) == (3, 2)


def test_bytes_that_decide_come_one_at_a_time() -> None:
    messages = [*hello(), *heartbeats(1, 2)]
    whole, single = Stream(), Stream()
    whole.say(*messages)
    single.say(*pieces_of(messages, 1))
    assert bodies(single.rows) == bodies(whole.rows)


def bodies(frames: list[Row]) -> list[tuple[int, int, bytes]]:
    return [(row.kind, row.is_response, row.body) for row in frames]


def test_unstable_version_is_known_by_its_older_layout() -> None:
    """ConsumerGroupHeartbeat v0 of 3.5 is not that of 3.7 (protocol note 27)."""
    from kafkascope.codec.frame import encode_frame
    from kafkascope.schema.layouts.examples import example

    name = "ConsumerGroupHeartbeatRequest"
    stream = Stream()
    frames = [
        encode_frame(name, 0, example(name, 0, "3.5"), {"correlationId": number, "clientId": "app"}, "3.5")
        for number in (1, 2)
    ]
    assert len(stream.say(*((REQUEST, frame) for frame in frames))) == 2
