"""Small recordings that others made, rebuilt: every request of them is listed, as tshark lists it."""

from collections.abc import Callable
from io import BytesIO

import pytest

import kafkascope
from kafkascope.capture.exchanges.exchange_columns import to_arrow
from kafkascope.capture.reader import Reading
from kafkascope.codec.frame import decode_frame
from tests.support import tshark
from tests.support.hexes import hexes
from tests.support.packet_build import Stamped, Talk, pcap
from tests.support.traffic import framed, request, response

CLIENTS = (("10.0.0.1", 40_000), ("10.0.0.9", 40_000))  # below the broker's address, and above it
BROKER = ("10.0.0.5", 9092)
Listed = tuple[int, int, int, str]


def listed(*files: list[Stamped], ports: tuple[int, ...] = ()) -> list[Listed]:
    reading = Reading([BytesIO(pcap(packets)) for packets in files], kafka_ports=ports)
    rows = [row for batch in reading.batches() for row in to_arrow(batch).to_pylist()]
    return [(row["api_key"], row["api_version"], row["correlation_id"], row["status"]) for row in rows]


def of_tshark(packets: list[Stamped]) -> list[tuple[int | None, ...]]:
    fields = ("kafka.request_key", "kafka.request.version", "kafka.correlation_id")
    dissected = tshark.dissect(pcap(packets), [BROKER[1]])
    return [
        tuple(map(frame.number, fields))
        for ends, all_ in dissected.items()
        if ends[1].endswith(":9092")
        for frame in all_
    ]


def talk(client: tuple[str, int] = CLIENTS[0]) -> Talk:
    return Talk(client=client, server=BROKER).open()


LATER_API_VERSIONS = framed(hexes("""
    0012 0009            # ApiVersions v9
    00000001             # correlation id 1
    0003 617070          # app
    00                   # no tags
    06 736f6d65 78       # software name, and whatever a later version has
    02 31 05 00
"""))  # fmt: skip
UNSUPPORTED = framed(hexes("""
    00000001             # correlation id 1
    0023                 # UNSUPPORTED_VERSION
    00000001             # one API
    0012 0000 0004       # ApiVersions v0 to v4
"""))  # fmt: skip
LIBRDKAFKA = framed(hexes("""
    0012 0000            # ApiVersions v0
    00000001             # correlation id 1
    0007 72646b61666b61  # rdkafka
    00000000             # an empty array, which v0 does not have
"""))  # fmt: skip
SHUTDOWN = framed(hexes("""
    0007 0000            # ControlledShutdown v0
    00000003             # correlation id 3
    00000001             # broker id 1: its header has no client id
"""))  # fmt: skip
NAMED_SHUTDOWN = framed(hexes("""
    0007 0000            # ControlledShutdown v0
    00000003             # correlation id 3
    0004 66616b65        # a client id all the same
    00000001             # broker id 1
"""))  # fmt: skip
SHUTDOWN_RESPONSE = framed(hexes("""
    00000003             # correlation id 3
    0000                 # no error
    00000000             # no partitions
"""))  # fmt: skip
UNKNOWN_API = framed(hexes("""
    2713 0002            # API key 10003, v2
    00000004             # correlation id 4
    0003 617070          # app
    0102030405
"""))  # fmt: skip
HELLO = [(0, request("ApiVersions", 3, 2)), (1, response("ApiVersions", 3, 2))]

# Messages of one connection, and what is listed.
CASES: dict[str, tuple[list[tuple[int, bytes]], list[Listed]]] = {
    "reset after the first Metadata": ([(0, request("Metadata", 1, 1))], [(3, 1, 1, "unanswered")]),
    "Metadata of all topics": ([(0, request("Metadata", 0, 7, topics=[]))], [(3, 0, 7, "unanswered")]),
    "refused Produce v2": ([(0, request("Produce", 2, 1, "sarama"))], [(0, 2, 1, "unanswered")]),
    "ApiVersions without a body": ([(0, request("ApiVersions", 0, 1))], [(18, 0, 1, "unanswered")]),
    "ApiVersions, one letter": ([(0, request("ApiVersions", 2, 1, "a"))], [(18, 2, 1, "unanswered")]),
    "ListGroups without a body": ([(0, request("ListGroups", 1, 9))], [(16, 1, 9, "unanswered")]),
    "ListGroups with tags alone": ([(0, request("ListGroups", 3, 9))], [(16, 3, 9, "unanswered")]),
    "ControlledShutdown": ([(0, SHUTDOWN), (1, SHUTDOWN_RESPONSE)], [(7, 0, 3, "answered")]),
    "ControlledShutdown with a name": ([(0, NAMED_SHUTDOWN), (1, SHUTDOWN_RESPONSE)], [(7, 0, 3, "answered")]),
    "later ApiVersions": ([(0, LATER_API_VERSIONS), (1, UNSUPPORTED)], [(18, 9, 1, "undecoded")]),
    "later ApiVersions, and what follows": (
        [(0, LATER_API_VERSIONS), (1, UNSUPPORTED), *HELLO],
        [(18, 9, 1, "undecoded"), (18, 3, 2, "answered")],
    ),
    "librdkafka": ([(0, LIBRDKAFKA), (1, response("ApiVersions", 0, 1))], [(18, 0, 1, "answered")]),
    "librdkafka, and what follows": (
        [(0, LIBRDKAFKA), (1, response("ApiVersions", 0, 1)), (0, request("Metadata", 2, 2, "rdkafka"))],
        [(18, 0, 1, "answered"), (3, 2, 2, "unanswered")],
    ),
    "unknown API in a connection": (
        [(0, UNKNOWN_API), HELLO[0], (1, framed(b"\0\0\0\4what")), HELLO[1]],
        [(10_003, 2, 4, "undecoded"), (18, 3, 2, "answered")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("ended", ["reset", "close", "open"])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("case", CASES)
def test_what_is_there_is_listed(case: str, client: tuple[str, int], ended: str) -> None:
    messages, expected = CASES[case]
    made = talk(client)
    for way, data in messages:
        made.say(way, data)
    if ended == "reset":
        made.reset(1)
    elif ended == "close":
        made.close()
    assert listed(made.packets) == expected


@pytest.mark.skipif(tshark.MISSING, reason=tshark.REASON)
@pytest.mark.parametrize("case", CASES)
def test_tshark_lists_the_same(case: str) -> None:
    messages, expected = CASES[case]
    made = talk()
    for way, data in messages:
        made.say(way, data)
    assert of_tshark(made.packets) == [row[:3] for row in expected]


def test_a_later_api_versions_has_the_error_of_its_response() -> None:
    made = talk().say(0, LATER_API_VERSIONS).say(1, UNSUPPORTED)
    (exchange,) = kafkascope.read(BytesIO(pcap(made.packets)))
    assert (exchange.error_code, exchange.error, exchange.status) == (35, "UNSUPPORTED_VERSION", "undecoded")


def test_extra_bytes_of_librdkafka_are_told() -> None:
    assert not decode_frame(LIBRDKAFKA).exact


ENDS: dict[str, Callable[[Talk], Talk]] = {
    "nobody": lambda made: made,
    "client first": Talk.close,
    "broker first": lambda made: hang_up(hang_up(made, 1), 0),
    "broker alone": lambda made: hang_up(made, 1),
    "reset": lambda made: made.reset(1),
}


def hang_up(made: Talk, way: int) -> Talk:
    made._add(way, 17)
    made.sequences[way] += 1
    return made


@pytest.mark.parametrize("files", ["one", "requests first", "responses first"])
@pytest.mark.parametrize("ended", ENDS)
@pytest.mark.parametrize("client", CLIENTS)
def test_one_exchange_entered_in_the_middle_has_its_response(client: tuple[str, int], ended: str, files: str) -> None:
    made = Talk(client=client, server=BROKER)
    made.say(0, request("FindCoordinator", 3, 8)).say(1, response("FindCoordinator", 3, 8))
    packets = ENDS[ended](made).packets
    sent = [packet for packet in packets if packet[1][26:30] == bytes(map(int, client[0].split(".")))]
    received = [packet for packet in packets if packet not in sent]
    parts = {"one": [packets], "requests first": [sent, received], "responses first": [received, sent]}[files]
    assert listed(*parts) == [(10, 3, 8, "answered")]


def test_request_without_a_name_needs_words() -> None:
    """Numbers alone are found in many protocols."""
    with_words = request("Metadata", 1, 1, None)
    assert listed(talk().say(0, with_words).reset(1).packets) == [(3, 1, 1, "unanswered")]
    for api, version in (("ListGroups", 0), ("ApiVersions", 0), ("Heartbeat", 0)):
        fields = {"groupId": "", "memberId": ""} if api == "Heartbeat" else {}
        nameless = request(api, version, 1, None, **fields)
        assert listed(talk().say(0, nameless).reset(1).packets) == []


@pytest.mark.parametrize("client", CLIENTS)
def test_header_alone_is_a_request_where_its_lengths_agree(client: tuple[str, int]) -> None:
    """From the middle too, and byte by byte; not with another byte, another key, or without a name."""
    whole = request("ApiVersions", 0, 7, "a")
    for opened in (True, False):
        for parts in ([whole], [whole[at : at + 1] for at in range(len(whole))]):
            made = Talk(client=client, server=BROKER)
            made = made.open() if opened else made
            for part in parts:
                made.say(0, part)
            assert listed(made.packets) == [(18, 0, 7, "unanswered")]
    body = whole[4:]
    for other in (
        framed(body + b"\0"),  # one byte more, within the frame
        whole + b"\0",  # and behind it
        whole[:-1],
        framed(body[:9] + b"\2" + body[10:]),  # a client id longer than the frame
        framed(body[:10] + b"\x01"),  # one that does not print
        framed(body[:8] + b"\0\0"),  # and an empty one
        framed(b"\0\3" + body[2:]),  # Metadata has a body
    ):
        assert listed(talk(client).say(0, other).close().packets) == []


def test_one_request_is_not_enough_where_the_other_side_speaks_otherwise() -> None:
    made = talk().say(0, request("Metadata", 1, 1)).say(1, framed(b"\0\0\0\7no response to it"))
    assert listed(made.close().packets) == []


@pytest.mark.parametrize("opened", [True, False])
def test_port_settles_what_does_not_decode(opened: bool) -> None:
    """It is listed as undecoded, and reading goes on."""
    garbage = framed(hexes("0003 0001 00000005 0003 617070") + b"\x7f" * 9)  # Metadata v1 with a body of noise
    made = talk() if opened else Talk(client=CLIENTS[0], server=BROKER)
    made.say(0, garbage).say(1, framed(b"\0\0\0\5what")).say(0, UNKNOWN_API).say(0, request("Heartbeat", 4, 6))
    made.say(1, framed(b"\0\0\0\4what")).say(1, response("Heartbeat", 4, 6))
    expected = [(3, 1, 5, "undecoded"), (10_003, 2, 4, "undecoded"), (12, 4, 6, "answered")]
    assert listed(made.close().packets, ports=(9092,)) == expected


def test_port_and_one_unknown_api_are_enough() -> None:
    made = talk().say(0, UNKNOWN_API).say(1, framed(b"\0\0\0\4what")).close()
    assert listed(made.packets, ports=(9092,)) == [(10_003, 2, 4, "undecoded")]
    assert listed(made.packets) == []
