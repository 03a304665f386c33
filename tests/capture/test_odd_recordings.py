"""Recordings of a kind that few make: what is there is read, and the account says what is not and why."""

import struct
from collections import Counter
from collections.abc import Callable, Iterable
from io import BytesIO

import pytest

from kafkascope.capture.base.flow import Problem
from kafkascope.capture.exchanges.account import Account
from kafkascope.capture.reader import Reading
from tests.support.packet_build import GRE, UDP, Stamped, Talk, ethernet, ipv4, pcap, udp
from tests.support.traffic import produce, request, response

APIS = (("ApiVersions", 3), ("Metadata", 9), ("Heartbeat", 4), ("FindCoordinator", 3))


def talk(made: Talk | None = None) -> Talk:
    """Four exchanges, nobody has hung up yet."""
    made = made or Talk().open()
    for number, (api, version) in enumerate(APIS):
        made.say(0, request(api, version, number)).say(1, response(api, version, number))
    return made


def read(*files: Iterable[Stamped], snap_length: int = 262_144) -> tuple[Counter[str], Account]:
    reading = Reading([BytesIO(pcap(packets, snap_length=snap_length)) for packets in files])
    for _ in reading.batches():
        pass
    return reading.account.statuses, reading.account


def of(direction: int, made: Talk) -> list[Stamped]:
    source = (made.client, made.server)[direction][1].to_bytes(2, "big")
    return [(time, packet) for time, packet in made.packets if packet[34:36] == source]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("by", [0, 1])
def test_directions_in_files_of_their_own_meet_where_a_reset_ends_the_connection(first: int, by: int) -> None:
    made = talk().reset(by)
    statuses, account = read(of(first, made), of(1 - first, made))
    assert statuses == {"answered": len(APIS)}
    assert [connection.closed for connection in account.connections] == ["reset"]


@pytest.mark.parametrize("by", [0, 1])
def test_answer_that_was_recorded_behind_the_reset_counts(by: int) -> None:
    """The reset says that it was sent: by its own number, or by the one that it acknowledges."""
    packets = talk().reset(by).packets
    statuses, account = read([*packets[:-2], packets[-1], packets[-2]])
    assert statuses == {"answered": len(APIS)}
    assert account.problems == {}


def test_answer_that_is_lost_before_a_reset_is_told() -> None:
    packets = talk().reset(0).packets
    statuses, account = read([*packets[:-2], packets[-1]])
    assert statuses == {"answered": len(APIS) - 1, "unanswered": 1}
    assert (account.lost_bytes, account.lost_answers) == (len(response(*APIS[-1], 3)), 1)


@pytest.mark.parametrize("closed", [False, True])
def test_start_inside_a_large_frame_hides_nothing_that_is_behind_it(closed: bool) -> None:
    """The exchanges are few bytes beside it: not enough to look again before the recording or the connection ends."""
    made = Talk().open().say(0, produce(40, 150_000))
    made = talk(made.say(1, response("Produce", 9, 40)))
    statuses, account = read((made.close() if closed else made).packets[20:])
    assert statuses == {"answered": len(APIS), "answer_only": 1}
    assert [connection.protocol for connection in account.connections] == ["kafka"]


def test_packets_that_the_snap_length_cut_are_told() -> None:
    packets = talk().packets
    cut = [len(packet) - 120 for _, packet in packets if len(packet) > 120]
    _, account = read(packets, snap_length=120)
    (_, problem) = account.kept["snap length"][0]
    assert problem.detail == f"{len(cut)} packets recorded in part"
    assert (problem.place, problem.lost_bytes) == (4, sum(cut))
    assert read(packets)[1].problems == {}


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize(
    "header",
    [
        b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 9092\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes.fromhex("c0a80001 c0a8000b dc04 2384"),
    ],
    ids=["line", "binary"],
)
def test_header_of_a_load_balancer_hides_nothing_that_is_behind_it(header: bytes, alone: bool) -> None:
    api, version = APIS[0]
    first = request(api, version, 40)
    made = Talk().open()
    made = made.say(0, header).say(0, first) if alone else made.say(0, header + first)
    statuses, account = read(talk(made.say(1, response(api, version, 40))).packets)
    assert statuses == {"answered": len(APIS) + 1}
    assert (account.lost_bytes, account.lost_places) == (len(header), 1)


def mpls(packet: bytes) -> bytes:
    return packet[:12] + bytes.fromhex("8847 00064140") + packet[14:]


def pppoe(packet: bytes) -> bytes:
    return packet[:12] + bytes.fromhex("8864 11000001") + struct.pack(">HH", len(packet) - 12, 0x21) + packet[14:]


def macsec(packet: bytes) -> bytes:
    return packet[:12] + bytes.fromhex("88e5 2c00 00000001") + packet[12:]


def pseudowire(packet: bytes) -> bytes:
    return packet[:12] + bytes.fromhex("8847 00064140 00000000") + packet


def erspan(head: str) -> Callable[[bytes], bytes]:
    """A switch mirrors the frame to a recorder."""
    return lambda packet: ethernet(ipv4("192.168.0.1", "192.168.0.2", bytes.fromhex(head) + packet, protocol=GRE))


def compressed(packet: bytes) -> bytes:
    return packet[:12] + bytes.fromhex("8864 11000001 0100 00fd") + packet[14:]


def gtp(packet: bytes) -> bytes:
    head = struct.pack(">BBHI", 0x30, 0xFF, len(packet) - 14, 7)
    return ethernet(ipv4("192.168.0.1", "192.168.0.2", udp(2152, 2152, head + packet[14:]), protocol=UDP))


def vxlan_gpe(packet: bytes) -> bytes:
    head = bytes.fromhex("0c000003 00002a00")  # network 42, Ethernet inside
    return ethernet(ipv4("192.168.0.1", "192.168.0.2", udp(50_000, 4790, head + packet), protocol=UDP))


READ: dict[str, Callable[[bytes], bytes]] = {
    "mpls": mpls,
    "a pseudowire": pseudowire,
    "pppoe": pppoe,
    "erspan I": erspan("0000 88be"),
    "erspan II": erspan("1000 88be 00000007 10010064 00000000"),
    "erspan III": erspan("1000 22eb 00000007 20010064 00000001 00000000"),
    "erspan III with a subheader": erspan("1000 22eb 00000007 20010064 00000001 00000001 0c000000 00000000"),
    "erspan II in mpls": lambda packet: mpls(erspan("1000 88be 00000007 10010064 00000000")(packet)),
}


@pytest.mark.parametrize("name", READ)
def test_exchanges_are_found_in_what_wraps_them(name: str) -> None:
    statuses, account = read([(time, READ[name](packet)) for time, packet in talk().packets])
    assert (statuses, account.problems) == ({"answered": len(APIS)}, {})


@pytest.mark.parametrize(
    ("wrapped", "kind", "name"),
    [
        (macsec, "macsec", "MACsec, which isn't read"),
        (gtp, "gtp", "GTP-U, which isn't read"),
        (vxlan_gpe, "vxlan gpe", "VXLAN-GPE, which isn't read"),
        (compressed, "pppoe", "PPPoE, compressed, encrypted or in multilink, which isn't read"),
        (
            erspan("1000 88be 00000007 30010064 00000000"),
            "erspan",
            "ERSPAN of a version or frame type that isn't read",
        ),
    ],
)
def test_what_is_wrapped_in_something_that_is_not_read_is_told_by_name(
    wrapped: Callable[[bytes], bytes], kind: str, name: str
) -> None:
    packets = talk().packets
    _, account = read([(time, wrapped(packet)) for time, packet in packets])
    ((_, problem),) = account.kept[kind]
    assert problem.detail == f"{len(packets)} packets in {name}"
    assert problem.lost_bytes == sum(len(wrapped(packet)) for _, packet in packets)


def test_what_holds_no_ip_is_left_out_without_a_word() -> None:
    arp, lldp = (ethernet(bytes(46), kind=kind) for kind in (0x0806, 0x88CC))
    statuses, account = read([*talk().packets, (1, arp), (2, lldp)])
    assert statuses == {"answered": len(APIS)}
    assert account.problems == {}


def test_packets_are_counted_over_all_pieces_of_a_file() -> None:
    """A file is read in pieces of some megabytes; the account has one line for it."""
    packet = macsec(ethernet(ipv4("10.0.0.1", "10.0.0.2", bytes(60_000))))
    _, account = read([(1, packet)] * 300)
    ((_, problem),) = account.kept["macsec"]
    assert (problem.detail, problem.place) == ("300 packets in MACsec, which isn't read", 0)
    assert account.problems == {"macsec": 1}
    assert account.problem_bytes["macsec"] == problem.lost_bytes == 300 * len(packet)


def test_faults_of_other_files_and_other_faults_are_counted_apart() -> None:
    account = Account()
    account.begin("a")
    account.add_problems([Problem("link type", "1 packet of a link type that isn't read (147)", 0, 24, 50, 1)])
    account.add_problems([Problem("link type", "2 packets of a link type that isn't read (148)", 3, 90, 80, 2)])
    account.add_problems([Problem("link type", "1 packet of a link type that isn't read (147)", 9, 900, 50, 1)])
    account.begin("b")
    account.add_problems([Problem("link type", "1 packet of a link type that isn't read (147)", 0, 24, 50, 1)])
    assert [(file, problem.detail[:9], problem.lost_bytes) for file, problem in account.kept["link type"]] == [
        ("a", "2 packets", 100),
        ("a", "2 packets", 80),
        ("b", "1 packet ", 50),
    ]
    assert account.problems == {"link type": 3}
