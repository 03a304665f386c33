"""Link layers, tunnels, IP and its fragments down to TCP segments: hand-made headers around one known segment."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from kafkascope import limits
from tests.capture.net.test_fragments import FRAGMENTED
from tests.support.hexes import hexes
from tests.support.packet_build import (
    Talk,
    block,
    enhanced,
    ethernet,
    interface,
    ipv4,
    ipv6,
    merged,
    pcap,
    pcapng,
    section,
    tcp,
    udp,
    vxlan,
)
from tests.support.recordings import Drip, Segment, segments

SOURCE, TARGET = "10.0.0.1", "10.0.0.2"
# Those of `LINKS` and `LINKS6` that tshark is asked about too.
JUDGED = ("mpls", "pppoe", "erspan")
SOURCE6, TARGET6 = "fd00::1", "fd00::2"

IPV4_TCP = hexes("""
    45 00 002b               # version 4, 20 bytes of header, 43 in all
    1234 4000                # identification, don't fragment
    40 06 0000               # time to live, TCP, checksum
    0a000001 0a000002        # 10.0.0.1 to 10.0.0.2
    9c40 2384                # port 40000 to 9092
    fffffffe 00000007        # sequence, acknowledgement
    50 18 ffff 0000 0000     # 20 bytes of header, PSH ACK, window, checksum, urgent
    616263                   # "abc"
""")
IPV6_TCP = hexes("""
    60000000 0017 06 40      # version 6, 23 bytes of payload, TCP, hop limit
    fd000000000000000000000000000001
    fd000000000000000000000000000002
    9c40 2384                # port 40000 to 9092
    fffffffe 00000007        # sequence, acknowledgement
    50 18 ffff 0000 0000     # 20 bytes of header, PSH ACK, window, checksum, urgent
    616263                   # "abc"
""")
EXPECTED4 = Segment(
    source=hexes("00000000000000000000ffff0a000001"), source_port=40000,
    target=hexes("00000000000000000000ffff0a000002"), target_port=9092,
    sequence=0xFFFFFFFE, acknowledgement=7, flags=0x18, payload=b"abc", wire_length=3, time_ns=5, packet=0,
)  # fmt: skip
EXPECTED6 = EXPECTED4._replace(
    source=hexes("fd000000000000000000000000000001"), target=hexes("fd000000000000000000000000000002")
)
ETHERNET = hexes("020000000002 020000000001")
# tshark takes only a vendor's addresses for Ethernet in MPLS.
VENDORS = hexes("001b21000002 001b21000001")


def pppoe(protocol: str, size: int = 43) -> bytes:
    """A session of PPPoE: version and type 1, code 0, session 1, length; then PPP's protocol, and `size` bytes."""
    return hexes("8864 11 00 0001") + struct.pack(">H", len(hexes(protocol)) + size) + hexes(protocol)


IPV4 = ETHERNET + hexes("0800")
OUTER4 = hexes("""
    45 00 0000 0000 0000 40 11 0000      # IPv4, length 0 as offload leaves it, UDP
    c0a80001 c0a80002
""")
OUTER4_GRE = OUTER4[:9] + b"\x2f" + OUTER4[10:]
VXLAN = hexes("""
    c001 12b5 0000 0000      # UDP to 4789
    08000000 00002a00        # VXLAN 42
""")
LINKS: dict[str, tuple[int, bytes]] = {
    "ethernet": (1, IPV4),
    "vlan": (1, ETHERNET + hexes("8100 0005 0800")),
    "qinq": (1, ETHERNET + hexes("88a8 0064 8100 0005 0800")),
    "old qinq, three tags": (1, ETHERNET + hexes("9100 0001 9200 0002 8100 0003 0800")),
    "802.3 with snap": (1, ETHERNET + hexes("0033 aaaa03 000000 0800")),
    "linux cooked v1": (113, hexes("""
        0004 0001 0006 0200000000010000      # sent by us, Ethernet, 6 bytes of address
        0800                                 # IPv4
    """)),
    "linux cooked v1, vlan": (113, hexes("0000 0001 0006 0200000000010000 8100 0005 0800")),
    "linux cooked v2": (276, hexes("""
        0800 0000 00000002                   # IPv4, reserved, interface 2
        0001 04 06 0200000000010000          # Ethernet, sent by us, 6 bytes of address
    """)),
    "raw 12": (12, b""),
    "raw 14": (14, b""),
    "raw 101": (101, b""),
    "raw ipv4": (228, b""),
    "null little endian": (0, hexes("02000000")),
    "null big endian": (0, hexes("00000002")),
    "loop little endian": (108, hexes("02000000")),
    "loop big endian": (108, hexes("00000002")),
    "vxlan": (1, IPV4 + OUTER4 + VXLAN + IPV4),
    "vxlan, linux port, vlan inside": (1, IPV4 + OUTER4 + hexes("""
        c001 2118 0000 0000                  # UDP to 8472
        08000000 00002a00                    # VXLAN 42
    """) + ETHERNET + hexes("8100 0007 0800")),
    "geneve with options": (1, IPV4 + OUTER4 + hexes("""
        c001 17c1 0000 0000                  # UDP to 6081
        02 00 6558 00002a00                  # 8 bytes of options, Ethernet inside, network 42
        0102 80 01 deadbeef                  # an option
    """) + IPV4),
    "geneve with ip inside": (1, IPV4 + OUTER4 + hexes("c001 17c1 0000 0000  0000 0800 00002a00")),
    "gre": (1, IPV4 + OUTER4_GRE + hexes("0000 0800")),
    "gre with checksum, key, sequence": (1, IPV4 + OUTER4_GRE + hexes("""
        b000 0800                            # flags, IPv4
        00000000 0000002a 00000001           # checksum, key, sequence
    """)),
    "gre with ethernet inside": (1, IPV4 + OUTER4_GRE + hexes("2000 6558 00000001") + IPV4),
    "ip in ip": (101, OUTER4[:9] + b"\x04" + OUTER4[10:]),
    "ip in ipv6": (101, hexes("""
        60000000 0000 04 40                  # IPv6, length 0, IPv4 inside
        fd000000000000000000000000000009 fd00000000000000000000000000000a
    """)),
    "mpls": (1, ETHERNET + hexes("""
        8847                                 # MPLS
        00064040 00065140                    # label 100; label 101, marked as the last
    """)),
    "mpls multicast, vlan": (1, ETHERNET + hexes("8100 0005 8848 00064140")),
    "mpls with ethernet inside": (1, ETHERNET + hexes("8847 00064140") + VENDORS + hexes("0800")),
    "mpls with a control word": (1, ETHERNET + hexes("8847 00064140 00000001") + VENDORS + hexes("0800")),
    "mpls in gre": (1, IPV4 + OUTER4_GRE + hexes("0000 8847 00064140")),
    "linux cooked v1, mpls": (113, hexes("0004 0001 0006 0200000000010000 8847 00064140")),
    "pppoe": (1, ETHERNET + pppoe("0021")),
    "pppoe, protocol of one byte": (1, ETHERNET + pppoe("21")),
    "pppoe, vlan": (1, ETHERNET + hexes("8100 0005") + pppoe("0021")),
    "mpls in pppoe": (1, ETHERNET + pppoe("0281 00064140")),
    "pppoe in mpls": (1, ETHERNET + hexes("8847 00064140 00000000") + VENDORS + pppoe("0021")),
    "erspan type I": (1, IPV4 + OUTER4_GRE + hexes("0000 88be") + IPV4),
    "erspan type II": (1, IPV4 + OUTER4_GRE + hexes("""
        1000 88be 00000007                   # with a sequence number
        1001 0064 00000001                   # version 1, VLAN 1, session 100, port 1
    """) + IPV4),
    "erspan type III": (1, IPV4 + OUTER4_GRE + hexes("""
        1000 22eb 00000007                   # with a sequence number
        2001 0064 00000001 0000 0000         # version 2, VLAN 1, session 100, time, tag, Ethernet inside
    """) + IPV4),
    "erspan type III with a subheader": (1, IPV4 + OUTER4_GRE + hexes("""
        1000 22eb 00000007
        2001 0064 00000001 0000 0001         # the last bit says that a subheader follows
        0c000000 00000000
    """) + ETHERNET + hexes("8100 0007 0800")),
    "ip in erspan type III": (1, IPV4 + OUTER4_GRE + hexes("1000 22eb 00000007 2001 0064 00000001 0000 0800")),
    "vxlan in vxlan": (1, (IPV4 + OUTER4 + VXLAN) * 2 + IPV4),
    "vxlan in gre": (1, IPV4 + OUTER4_GRE + hexes("0000 6558") + IPV4 + OUTER4 + VXLAN + IPV4),
}  # fmt: skip
LINKS6: dict[str, tuple[int, bytes]] = {
    "ethernet": (1, ETHERNET + hexes("86dd")),
    "raw ipv6": (229, b""),
    "raw 101": (101, b""),
    "linux cooked v1": (113, hexes("0004 0001 0006 0200000000010000 86dd")),
    "linux cooked v2": (276, hexes("86dd 0000 00000002 0001 04 06 0200000000010000")),
    **{
        f"{name} family {family}": (link, family.to_bytes(4, order))
        for name, link in (("null", 0), ("loop", 108))
        for family in (10, 24, 28, 30)
        for order in ("little", "big")
    },
    "6in4": (101, OUTER4[:9] + b"\x29" + OUTER4[10:]),
    "gre": (101, OUTER4[:9] + b"\x2f" + OUTER4[10:] + hexes("0000 86dd")),
    "mpls": (1, ETHERNET + hexes("8847 00002140")),  # the label that says so (RFC 3032), and the version does too
    "mpls with a control word": (1, ETHERNET + hexes("8847 00064140 00000001") + VENDORS + hexes("86dd")),
    "pppoe": (1, ETHERNET + pppoe("0057", 63)),
    "pppoe, protocol of one byte": (1, ETHERNET + pppoe("57", 63)),
    "erspan type II": (1, IPV4 + OUTER4_GRE + hexes("1000 88be 00000007 10010064 00000001") + ETHERNET + hexes("86dd")),
}


def parsed(packet: bytes, link: int = 101, **options: int) -> list[Segment]:
    """The segments of a recording with this packet alone, and no problem but that it was cut."""
    found_segments, problems = segments(pcap([(5, packet)], link=link, nano=True, **options))  # type: ignore[arg-type]
    assert [problem for problem in problems if problem.kind != "snap length"] == []
    return found_segments


@pytest.mark.parametrize("name", LINKS)
def test_finds_ipv4_in_every_link_and_tunnel(name: str) -> None:
    link, header = LINKS[name]
    assert parsed(header + IPV4_TCP, link) == [EXPECTED4]
    assert parsed(header + IPV4_TCP + b"padding", link) == [EXPECTED4]


@pytest.mark.parametrize("name", LINKS6)
def test_finds_ipv6_in_every_link_and_tunnel(name: str) -> None:
    link, header = LINKS6[name]
    assert parsed(header + IPV6_TCP + b"padding", link) == [EXPECTED6]


@pytest.mark.parametrize("name", LINKS)
def test_headers_cut_anywhere_give_no_segment_and_one_problem_at_most(name: str) -> None:
    link, header = LINKS[name]
    packet = header + IPV4_TCP
    for size in range(len(packet) - 3 + 1):
        found_segments, problems = segments(pcap([(5, packet)], link=link, nano=True, snap_length=size))
        summaries = [(problem.kind, problem.lost_bytes) for problem in problems]
        if size >= len(header) + 40:
            assert found_segments == [EXPECTED4._replace(payload=b"", wire_length=3)]
            assert summaries == [("snap length", 3)]
        else:
            assert found_segments == []
            assert summaries in ([], [("cut headers", size)])


@pytest.mark.parametrize(
    ("count", "detail"), [(1, "1 packet cut inside the headers"), (2, "2 packets cut inside the headers")]
)
def test_problems_of_one_packet_and_of_several_are_told_in_words_that_fit(count: int, detail: str) -> None:
    packets = [(number, ethernet(IPV4_TCP)) for number in range(count)]
    _, problems = segments(pcap(packets, snap_length=20))
    assert [problem.detail for problem in problems] == [detail]


def test_the_payload_that_a_snap_length_cut_is_still_counted() -> None:
    packet = ethernet(ipv4(SOURCE, TARGET, tcp(1, 2, payload=bytes(1000))))
    (segment,) = parsed(packet, 1, snap_length=100)
    assert (segment.payload, segment.wire_length) == (bytes(46), 1000)


def test_options_of_ip_and_tcp_are_skipped() -> None:
    sent = tcp(1, 2, payload=b"data", options=bytes.fromhex("0101080a0000000100000002"))
    (segment,) = parsed(ipv4(SOURCE, TARGET, sent, options=bytes.fromhex("94040000")))
    assert (segment.payload, segment.wire_length) == (b"data", 4)


def test_an_ip_length_of_zero_means_the_whole_frame() -> None:
    (segment,) = parsed(ipv4(SOURCE, TARGET, tcp(1, 2, payload=bytes(70_000)), total=0))
    assert (len(segment.payload), segment.wire_length) == (70_000, 70_000)
    (segment,) = parsed(ipv4(SOURCE, TARGET, tcp(1, 2, payload=bytes(70_000)), total=0), snap_length=1040)
    assert (len(segment.payload), segment.wire_length) == (1000, 70_000)
    (segment,) = parsed(ipv6(SOURCE6, TARGET6, tcp(1, 2, payload=bytes(70_000)), length=0))
    assert segment.wire_length == 70_000


def test_a_jumbogram_says_its_length_in_an_option() -> None:
    sent = tcp(1, 2, payload=bytes(70_000))
    jumbo = hexes("00 c2 04") + struct.pack(">I", 8 + len(sent))  # 8 bytes of header, option c2 of 4 bytes
    (segment,) = parsed(ipv6(SOURCE6, TARGET6, sent, extensions=[(0, jumbo)], length=0) + b"padding")
    assert (len(segment.payload), segment.wire_length) == (70_000, 70_000)


def test_an_ip_length_longer_than_the_frame_is_what_was_sent() -> None:
    (segment,) = parsed(ipv4(SOURCE, TARGET, tcp(1, 2, payload=b"abc"), total=40 + 100))
    assert (segment.payload, segment.wire_length) == (b"abc", 100)


@pytest.mark.parametrize(
    "extensions",
    [
        [(0, hexes("00 0104 00000000"))],  # hop-by-hop, padded
        [(43, hexes("00 0000 00000000")), (60, hexes("01") + bytes(14))],  # routing, destination options of 16 bytes
        [(51, hexes("04") + bytes(22))],  # authentication counts words of four, less two
        [(135, bytes(7)), (139, bytes(7)), (140, bytes(7))],  # mobility, host identity, shim6
        [(44, hexes("00 0000 00000001"))],  # a fragment header around a whole packet (RFC 6946)
    ],
)
def test_extension_headers_of_ipv6_are_skipped(extensions: list[tuple[int, bytes]]) -> None:
    (segment,) = parsed(ipv6(SOURCE6, TARGET6, IPV6_TCP[40:], extensions=extensions) + b"padding")
    assert segment == EXPECTED6


def test_what_is_no_tcp_is_left_out_without_a_word() -> None:
    packets = [
        ethernet(bytes(28), kind=0x0806),  # ARP
        ethernet(bytes(28), kind=0x88CC),
        ethernet(ipv4(SOURCE, TARGET, udp(1, 53, b"query"), protocol=17)),
        ethernet(ipv4(SOURCE, TARGET, b"\x08\x00", protocol=1)),
        ethernet(ipv6(SOURCE6, TARGET6, bytes(20), protocol=50)),  # encrypted
        ethernet(ipv6(SOURCE6, TARGET6, b"", protocol=59)),
        ethernet(ipv4(SOURCE, TARGET, udp(1, 4789, b"not vxlan"), protocol=17)),
        ethernet(ipv4(SOURCE, TARGET, udp(1, 4789, b"\x08" + bytes(30)), protocol=17)),
        ethernet(ipv4(SOURCE, TARGET, b"\x00\x01\x08\x00" + IPV4_TCP, protocol=47)),  # GRE of another version
        ethernet(hexes("00064140 10000007") + bytes(40), kind=0x8847),  # about a pseudowire
        ethernet(hexes("00064140 00000000") + ethernet(bytes(28), kind=0x0806), kind=0x8847),  # ARP in MPLS
        ethernet(hexes("11 00 0001 000a c021 0101 0008 01040578"), kind=0x8864),  # LCP
        ethernet(hexes("11 09 0000 0004 01010000") + IPV4_TCP, kind=0x8863),  # discovery
        ethernet(hexes("11 a7 0001 0000 0021") + IPV4_TCP, kind=0x8864),  # the end of a session
        ethernet(ipv4(SOURCE, TARGET, udp(1, 2152, hexes("3201 0004 00000000 00010000")), protocol=17)),  # GTP-U's echo
        ethernet(ipv4(SOURCE, TARGET, udp(1, 4790, bytes(40)), protocol=17)),
    ]
    assert segments(pcap([(5, packet) for packet in packets])) == ([], [])


@pytest.mark.parametrize(
    ("packet", "kind"),
    [
        (b"\x55" + IPV4_TCP[1:], "malformed"),  # IP version 5
        (b"\x44" + IPV4_TCP[1:], "malformed"),  # a header of 16 bytes
        (IPV4_TCP[:2] + b"\x00\x13" + IPV4_TCP[4:], "malformed"),  # all of it shorter than its header
        (IPV4_TCP[:2] + b"\x00\x27" + IPV4_TCP[4:], "malformed"),  # too short for TCP
        (IPV4_TCP[:32] + b"\x40" + IPV4_TCP[33:], "malformed"),  # a TCP header of 16 bytes
        (IPV4_TCP[:32] + b"\xf0" + IPV4_TCP[33:], "malformed"),  # longer than the packet
    ],
)
def test_headers_that_contradict_themselves_are_told(packet: bytes, kind: str) -> None:
    found_segments, problems = segments(pcap([(5, packet)] * 3, link=228))
    assert found_segments == []
    assert [(problem.kind, problem.place, problem.offset, problem.lost_bytes) for problem in problems] == [
        (kind, 0, 40, 3 * len(packet))
    ]


def test_a_link_type_that_is_not_read_is_told_by_number() -> None:
    found_segments, problems = segments(pcap([(5, bytes(50))] * 2, link=127))
    assert found_segments == []
    assert [(problem.kind, problem.detail) for problem in problems] == [
        ("link type", "2 packets of a link type that isn't read (127)")
    ]


def test_tunnels_are_followed_to_a_limit() -> None:
    frame = ethernet(IPV4_TCP)
    for depth in range(1, limits.MAX_TUNNELS + 2):
        frame = ethernet(ipv4("192.168.0.1", "192.168.0.2", vxlan(frame), protocol=17))
        found_segments, problems = segments(pcap([(5, frame)], nano=True))
        if depth <= limits.MAX_TUNNELS:
            assert (found_segments, problems) == ([EXPECTED4], [])
        else:
            assert (found_segments, [problem.kind for problem in problems]) == ([], ["tunnels"])


def test_one_file_with_interfaces_of_several_link_types() -> None:
    raw = section() + interface(1) + interface(113) + interface(0) + interface(127)
    raw += enhanced(ethernet(IPV4_TCP), 0, 0)
    raw += enhanced(LINKS["linux cooked v1"][1] + IPV4_TCP, 0, 1)
    raw += enhanced(hexes("0000001e") + IPV6_TCP, 0, 2) + block(5, b"") + enhanced(b"?", 0, 3)
    found_segments, problems = segments(raw)
    assert found_segments == [
        EXPECTED4._replace(time_ns=0, packet=0),
        EXPECTED4._replace(time_ns=0, packet=1),
        EXPECTED6._replace(time_ns=0, packet=2),
    ]
    assert [(problem.kind, problem.place) for problem in problems] == [("link type", 3)]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not there to judge")
def test_tshark_finds_the_same_segments(tmp_path: Path) -> None:
    padded = [(0, hexes("00 0104 00000000")), (60, hexes("01 010c") + bytes(12)), (51, hexes("04") + bytes(22))]
    geneve = udp(1, 6081, hexes("0200 6558 00002a00 0102 80 01 deadbeef") + ethernet(IPV4_TCP))
    packets = [
        ethernet(IPV4_TCP, tags=[(0x88A8, 100), (0x8100, 5)]),
        ethernet(
            ipv4(
                SOURCE,
                TARGET,
                vxlan(ethernet(ipv4(TARGET, SOURCE, vxlan(ethernet(IPV4_TCP)), protocol=17))),
                protocol=17,
            )
        ),
        ethernet(ipv4(SOURCE, TARGET, geneve, protocol=17)),
        ethernet(ipv4(SOURCE, TARGET, hexes("b000 6558 00000000 0000002a 00000001") + ethernet(IPV6_TCP), protocol=47)),
        ethernet(ipv6(SOURCE6, TARGET6, IPV4_TCP, protocol=4)),
        ethernet(ipv6(SOURCE6, TARGET6, IPV6_TCP[40:], extensions=padded)),
        *(LINKS[name][1] + IPV4_TCP for name in LINKS if name.startswith(JUDGED)),
        *(LINKS6[name][1] + IPV6_TCP for name in LINKS6 if name.startswith(JUDGED)),
        *(ethernet(piece) for name in ("ipv4", "ipv6") for piece in FRAGMENTED[name]()),
    ]
    judged = sum(name.startswith(JUDGED) for name in (*LINKS, *LINKS6))
    raw = pcapng([(0, packet) for packet in packets])
    path = tmp_path / "judged"
    path.write_bytes(raw)
    fields = ("frame.number", "tcp.srcport", "tcp.seq_raw", "tcp.len")
    done = subprocess.run(
        ["tshark", "-r", path, "-Y", "tcp", "-T", "fields", *(part for field in fields for part in ("-e", field))],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    theirs = [tuple(map(int, line.split("\t"))) for line in done.stdout.splitlines()]
    found_segments, problems = segments(raw)
    assert [
        (segment.packet + 1, segment.source_port, segment.sequence, segment.wire_length) for segment in found_segments
    ] == theirs
    assert (len(theirs), problems) == (8 + judged, [])


def test_chunks_of_any_size_give_the_same_segments() -> None:
    talks = [
        Talk(client=("10.0.0.1", 40000 + i), time_ns=i * 777).open().say(0, b"q" * 3000).say(1, b"a" * 90)
        for i in range(5)
    ]
    raw = pcapng(merged(talks))
    whole = segments(raw)
    assert len(whole[0]) == sum(len(talk.packets) for talk in talks)
    for size in (1, 50, 1000):
        assert segments(Drip(raw, size)) == whole
