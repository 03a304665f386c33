"""Dumps as the tools print them, packets of tcpdump with their headers, and files with a byte order mark."""

import base64
import shutil
import subprocess
from pathlib import Path
from struct import pack

import pytest

from kafkascope.cli.bytes.input import read_bytes
from kafkascope.codec.text.byte_text import parse_text
from kafkascope.errors import InputError
from tests.cli.test_input import FRAME, hexdump, tcpdump, wireshark
from tests.support.cli import Cli

SUMMARY = "12:34:56.789012 IP 127.0.0.1.50000 > 127.0.0.1.9092: Flags [P.], seq 1:43, ack 1, win 512, length 42\n"
ETHERNET = bytes(12)


def tool(*command: str, data: bytes) -> str:
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not on this machine")
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout.decode()


def tcp(payload: bytes) -> bytes:
    return pack(">HHIIBBHHH", 50000, 9092, 1, 1, 8 << 4, 0x18, 512, 0, 0) + bytes(12) + payload


def ipv4(inside: bytes, protocol: int = 6) -> bytes:
    return pack(">BBHHHBBH", 0x45, 0, 20 + len(inside), 1, 0, 64, protocol, 0) + b"\x7f\0\0\1" * 2 + inside


def ipv6(inside: bytes, following: int = 6) -> bytes:
    return pack(">IHBB", 6 << 28, len(inside), following, 64) + bytes(15) + b"\1" + bytes(15) + b"\1" + inside


def test_hex_in_groups_of_eight_keeps_its_zeros(cli: Cli) -> None:
    assert parse_text("00000000 0000") == bytes(6)
    assert parse_text("00000000 00000000 0000") == bytes(10)
    assert parse_text("00000000 00 00") == bytes(6)
    assert "6 bytes, only the body" in cli.out("decode", "--as", "HeartbeatResponse:1", "00000000 0000")


@pytest.mark.parametrize("columns", ["20", "32", "60"])
def test_wide_rows_of_xxd_are_whole(columns: str) -> None:
    assert parse_text(tool("xxd", "-c", columns, data=FRAME)) == FRAME


@pytest.mark.parametrize("size", [1, 5, 16, 17, 42])
def test_od_is_understood_with_octal_offsets_too(size: int) -> None:
    data = FRAME[:size]
    assert parse_text(tool("od", "-v", "-tx1", data=data)) == data
    assert parse_text(tool("od", "-v", "-Ax", "-w32", "-tx1", data=data)) == data


@pytest.mark.parametrize("size", [3, 16])
@pytest.mark.parametrize("dress", [hexdump, wireshark])
def test_one_row_is_a_dump(dress: object, size: int) -> None:
    assert callable(dress)
    assert parse_text(dress(FRAME[:size])) == FRAME[:size]


def test_a_capital_x_is_hex_too() -> None:
    assert parse_text("0X00, 0X1f") == b"\x00\x1f"


def test_base64_may_hold_what_hex_begins_with() -> None:
    data = base64.b64decode("AAAA0xAA0XAAzzzz")
    assert parse_text("AAAA0xAA0XAAzzzz") == data


def test_what_is_wrong_with_a_dump_is_said_without_being_told_that_it_is_one() -> None:
    repeated = tool("hexdump", "-C", data=FRAME[:16] + bytes(64) + FRAME)
    with pytest.raises(InputError, match=r"line 3 .*repeated rows.*hexdump -v"):
        parse_text(repeated)
    with pytest.raises(InputError, match="line 1 of the dump is at 0x4, expected 0x0"):
        parse_text(tool("xxd", "-s", "4", data=FRAME))


@pytest.mark.parametrize("summary", ["", SUMMARY], ids=["rows alone", "with summary"])
@pytest.mark.parametrize("link", [b"", ETHERNET], ids=["-X", "-XX"])
@pytest.mark.parametrize("version", [4, 6])
def test_a_packet_of_tcpdump_is_what_tcp_carries(summary: str, link: bytes, version: int) -> None:
    packet = ipv4(tcp(FRAME)) if version == 4 else ipv6(tcp(FRAME))
    link = link and link + (b"\x08\x00" if version == 4 else b"\x86\xdd")
    assert parse_text(summary + tcpdump(link + packet)) == FRAME


def test_of_several_packets_the_one_that_carries_something_is_read() -> None:
    empty = SUMMARY + tcpdump(ipv4(tcp(b"")))
    full = SUMMARY + tcpdump(ipv4(tcp(FRAME)))
    assert parse_text(empty + full + empty) == FRAME
    with pytest.raises(InputError, match=r"2 packets carry data; .*`kafkascope read`"):
        parse_text(full + full)
    with pytest.raises(InputError, match=r"no data.*`kafkascope read`"):
        parse_text(empty)


def test_a_packet_that_is_not_tcp_or_not_whole_says_so() -> None:
    with pytest.raises(InputError, match=r"isn't TCP.*`kafkascope read`"):
        parse_text(SUMMARY + tcpdump(ipv4(tcp(FRAME), protocol=17)))
    arp = bytes(12) + b"\x08\x06" + bytes(28)
    with pytest.raises(InputError, match="isn't TCP"):
        parse_text("12:34:56.789012 ARP, Request who-has 10.0.0.1 tell 10.0.0.2, length 28\n" + tcpdump(arp))
    with pytest.raises(InputError, match=r"cut off.*tcpdump -s 0"):
        parse_text(SUMMARY + tcpdump(ipv4(tcp(FRAME))[:70]))


@pytest.mark.parametrize("options", [["-X"], ["-XX"], ["-X", "-v"], ["-X", "-tttt"]], ids="".join)
def test_tcpdump_itself_is_understood(tmp_path: Path, options: list[str]) -> None:
    packet = ETHERNET + b"\x08\x00" + ipv4(tcp(FRAME))
    file = tmp_path / "one.pcap"
    header = pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    file.write_bytes(header + pack("<IIII", 1_700_000_000, 0, len(packet), len(packet)) + packet)
    assert parse_text(tool("tcpdump", "-n", *options, "-r", str(file), data=b"")) == FRAME


@pytest.mark.parametrize("coding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("text", [FRAME.hex(), hexdump(FRAME)], ids=["hex", "dump"])
def test_a_file_with_a_byte_order_mark_is_text(tmp_path: Path, coding: str, text: str) -> None:
    file = tmp_path / "frame.txt"
    file.write_bytes(text.encode(coding))
    assert read_bytes(f"@{file}") == FRAME
    assert read_bytes(f"@{file}", "raw") == text.encode(coding)


def test_bytes_that_begin_like_a_byte_order_mark_are_bytes(tmp_path: Path) -> None:
    file = tmp_path / "body.bin"
    for content in (b"\xff\xfe\x00\x01\x02", b"\xfe\xff\xd8\x00", b"\xef\xbb\xbf\x00"):
        file.write_bytes(content)
        assert read_bytes(f"@{file}") == content
