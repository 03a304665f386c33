"""What people have in hand: hex in any dress, dumps of the usual tools, base64 and raw bytes are all the same bytes."""

import base64
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkascope.cli.bytes.input import read_bytes
from kafkascope.codec.text.byte_text import parse_text
from kafkascope.errors import InputError
from tests.support.cli import Cli, process
from tests.support.hexes import hexes

# Heartbeat v0, in two rows of a dump and a bit
FRAME = hexes("""
    0000 0026               # 38 bytes follow
    000c 0000               # Heartbeat v0
    0000 0007               # correlation id 7
    0008 636865636b6f7574   # client id "checkout"
    0005 6f72646572         # group id "order"
    0000 000c               # generation id 12
    0007 6d656d62657231     # member id "member1": its last bytes look like hex in a column of characters
""")


def xxd(data: bytes) -> str:
    """As xxd prints it: `00000000: 0000 0026 …  ...&`."""
    return "".join(
        f"{at:08x}: {data[at : at + 16].hex(' ', 2):<39}  {_characters(data[at : at + 16])}\n"
        for at in range(0, len(data), 16)
    )


def hexdump(data: bytes) -> str:
    """As hexdump -C prints it: `00000000  00 00 00 26 …  |...&|`, the size alone at the end."""
    rows = ""
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        rows += f"{at:08x}  {row[:8].hex(' '):<23}  {row[8:].hex(' '):<23}  |{_characters(row)}|\n"
    return rows + f"{len(data):08x}\n"


def tcpdump(data: bytes) -> str:
    """As tcpdump -X prints it: a tab, `0x0000:  0000 0026 …  ...&`."""
    return "".join(
        f"\t0x{at:04x}:  {data[at : at + 16].hex(' ', 2):<39}  {_characters(data[at : at + 16])}\n"
        for at in range(0, len(data), 16)
    )


def wireshark(data: bytes) -> str:
    """As Wireshark copies it: `0000   00 00 00 26 …   ...&`."""
    return "".join(
        f"{at:04x}   {data[at : at + 16].hex(' '):<47}   {_characters(data[at : at + 16])}\n"
        for at in range(0, len(data), 16)
    )


def _characters(data: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)


DRESSES = {
    "plain": FRAME.hex(),
    "upper case": FRAME.hex().upper(),
    "spaced": FRAME.hex(" "),
    "in fours": FRAME.hex(" ", 2),
    "0x in front": "0x" + FRAME.hex(),
    "0x and commas": ", ".join(f"0x{byte:02x}" for byte in FRAME),
    "backslash x": "".join(f"\\x{byte:02x}" for byte in FRAME),
    "colons": FRAME.hex(":"),
    "lines": "\n".join(re.findall(".{1,20}", FRAME.hex())),
    "xxd": xxd(FRAME),
    "hexdump -C": hexdump(FRAME),
    "tcpdump -X": tcpdump(FRAME),
    "wireshark": wireshark(FRAME),
    "base64": base64.b64encode(FRAME).decode(),
    "base64 for urls": base64.urlsafe_b64encode(FRAME).decode().rstrip("="),
    "base64 in lines": base64.encodebytes(FRAME).decode(),
}


@pytest.mark.parametrize("dress", DRESSES)
def test_every_dress_is_the_same_bytes(dress: str) -> None:
    assert parse_text(DRESSES[dress]) == FRAME


@pytest.mark.parametrize("dress", ["plain", "xxd", "hexdump -C", "tcpdump -X", "base64"])
def test_every_dress_comes_from_a_file_or_standard_input_too(cli: Cli, dress: str, tmp_path: Path) -> None:
    text = DRESSES[dress]
    file = tmp_path / "dump.txt"
    file.write_text(text)
    output = cli.out("decode", f"@{file}")
    assert output.startswith("HeartbeatRequest v0  correlation id 7 · client id checkout · 42 bytes with length")
    assert cli.out("decode", "-", stdin=text.encode()) == output
    assert cli.out("decode", stdin=text.encode()) == output


@pytest.mark.parametrize(
    ("tool", "options"),
    [
        ("xxd", []),
        ("xxd", ["-u"]),
        ("xxd", ["-g1"]),
        ("xxd", ["-p"]),
        ("hexdump", ["-C"]),
        ("od", ["-Ax", "-tx1z", "-v"]),
    ],
    ids=lambda value: "".join(value) if isinstance(value, list) else value,
)
def test_the_tools_themselves_are_understood(tool: str, options: list[str]) -> None:
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not on this machine")
    dumped = subprocess.run([tool, *options], input=FRAME, capture_output=True, check=True).stdout
    assert parse_text(dumped.decode()) == FRAME


@pytest.mark.parametrize("tool", [xxd, hexdump, tcpdump, wireshark])
def test_a_last_row_of_any_length_takes_nothing_from_the_characters(tool: Callable[[bytes], str]) -> None:
    # characters that are hex digits, so that a column of them looks like more bytes
    data = bytes([0, 0, 0, 7]) + b"abcdef0123456789" * 3
    assert [size for size in range(1, 40) if parse_text(tool(data[:size]), "dump") != data[:size]] == []


def test_raw_bytes_come_from_a_file_or_a_pipe(tmp_path: Path) -> None:
    file = tmp_path / "frame.bin"
    file.write_bytes(FRAME)
    assert read_bytes(f"@{file}") == FRAME
    assert process("decode", stdin=FRAME).stdout.startswith(b"HeartbeatRequest v0")


def test_raw_bytes_that_look_like_text_need_to_be_called_raw(tmp_path: Path) -> None:
    file = tmp_path / "body.bin"
    file.write_bytes(b"ABCD")
    assert read_bytes(f"@{file}") == bytes.fromhex("ABCD")
    assert read_bytes(f"@{file}", "raw") == b"ABCD"


def test_a_dump_that_leaves_rows_out_is_refused() -> None:
    with pytest.raises(InputError, match=r"line 2 .*repeated rows.*hexdump -v"):
        parse_text("00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n*\n00000030\n")
    missing = hexdump(FRAME).splitlines()
    with pytest.raises(InputError, match=r"line 2 of the dump is at 0x20, expected 0x10"):
        parse_text("\n".join([missing[0], missing[2]]), "dump")


@pytest.mark.parametrize("wrong", ["0000002g000c0000", "00 00 00 2g 00 0c 00 00", "0x0000002g", "000000260000000O" * 4])
def test_hex_with_a_wrong_digit_is_not_taken_for_base64(wrong: str) -> None:
    with pytest.raises(InputError, match="isn't a hex digit"):
        parse_text(wrong)


def test_hex_that_is_said_to_be_hex_names_the_wrong_digit() -> None:
    with pytest.raises(InputError, match=r"'g' isn't a hex digit \(digit 8\)"):
        parse_text("0000002g", "hex")
