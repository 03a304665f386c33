"""What `decode` takes by hand: text of the largest frame in any form, parsed while it is read."""

import base64
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from kafkascope import limits
from kafkascope.cli.bytes.input import read_bytes
from kafkascope.codec.text.byte_text import parse_text
from kafkascope.codec.text.long_text import parse_long
from kafkascope.errors import InputError
from tests.hostile.child import run

SOAK = bool(os.environ.get("KAFKASCOPE_SOAK"))
MIB = 1 << 20
RAW = Random(3).randbytes(3 * MIB)


def dump_of(data: bytes) -> bytes:
    rows = (data[at : at + 16] for at in range(0, len(data), 16))
    return b"".join(b"%08x: %-40s  .\n" % (16 * number, row.hex(" ", 2).encode()) for number, row in enumerate(rows))


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "hex": lambda data: data.hex().encode(),
    "hex in pairs": lambda data: data.hex(" ").encode(),
    "0x": lambda data: b"".join(b"0x%02x," % byte for byte in data),
    "\\x": lambda data: b"".join(b"\\x%02x" % byte for byte in data),
    "utf-16": lambda data: data.hex(":").encode("ascii").decode().encode("utf-16"),
    "base64": base64.b64encode,
    "base64 in lines": base64.encodebytes,
    "dump": dump_of,
}


@pytest.mark.parametrize("form", FORMS)
def test_long_text_means_the_same_as_short_text(form: str) -> None:
    """Wherever it is cut."""
    data = RAW[:2_000]
    text = FORMS[form](data)
    for size in (7, 100, 4_096):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        first = len(b"".join(pieces)) if form == "dump" and size < 100 else size
        assert parse_long([text[:first], *(text[at : at + size] for at in range(first, len(text), size))]) == data


def read_in_a_child(path: Path, most: str = "", stdin: bool = False) -> tuple[str, int]:
    code = f"""
from kafkascope import limits
{most}
from kafkascope.cli.bytes.input import read_bytes
from kafkascope.errors import InputError
try:
    print(len(read_bytes(sys.argv[1])))
except InputError as error:
    print(error)
"""
    imports = "import kafkascope.cli.main"
    if stdin:
        code = f"sys.stdin = open({str(path)!r})\n{code}"
    ran = run(imports, code, "-" if stdin else f"@{path}", timeout=1_800)
    return ran.output, ran.peak


@pytest.mark.parametrize("stdin", [False, True], ids=["file", "standard input"])
@pytest.mark.parametrize("form", ["hex in pairs", "base64 in lines", "dump"])
def test_text_is_never_held_as_a_whole(form: str, stdin: bool, tmp_path: Path) -> None:
    """MAX_INPUT_CHARACTERS and MAX_INPUT_BYTES: a part of the largest, which takes in proportion."""
    data = RAW[: MIB // 2] if form == "dump" else RAW
    path = tmp_path / "text"
    path.write_bytes(FORMS[form](data))
    output, peak = read_in_a_child(path, stdin=stdin)
    assert output == str(len(data))
    # The bytes while they grow, those that come out, and pieces of a megabyte.
    assert peak < 3 * len(data) + 12 * MIB


@pytest.mark.skipif(not SOAK, reason="make soak")
@pytest.mark.parametrize("form", ["hex in pairs", "base64 in lines", "dump"])
def test_the_largest_text_takes_less_than_a_gigabyte(form: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(FORMS[form](Random(3).randbytes(limits.MAX_INPUT_BYTES)))
    assert path.stat().st_size <= limits.MAX_INPUT_CHARACTERS
    script = (
        "import sys; from kafkascope.cli.main import main; code = main(sys.argv[1:]);"
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "decode", f"@{path}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, timeout=3_600,
    )  # fmt: skip
    assert int(done.stderr.splitlines()[-1]) * 1024 <= 1_000_000_000


def test_what_is_beyond_one_frame_is_refused_while_it_is_read(tmp_path: Path) -> None:
    """MAX_INPUT_BYTES, lowered: the rest of the text isn't parsed."""
    path = tmp_path / "text"
    path.write_bytes(RAW.hex().encode() * 4)
    output, peak = read_in_a_child(path, f"limits.MAX_INPUT_BYTES = {MIB}")
    assert output == f"more than {MIB} bytes, the most that a broker allows for one frame"
    assert peak < 16 * MIB


@pytest.mark.parametrize("stdin", [False, True], ids=["file", "standard input"])
def test_more_text_than_the_largest_frame_takes_is_refused(stdin: bool, tmp_path: Path) -> None:
    """MAX_INPUT_CHARACTERS: of a file before it is read."""
    path = tmp_path / "text"
    path.write_bytes(b" " * (5 * MIB))
    output, peak = read_in_a_child(path, f"limits.MAX_INPUT_CHARACTERS = {4 * MIB}", stdin=stdin)
    assert output.endswith(f"is larger than {4 * MIB} bytes, the limit for one frame")
    assert peak < 16 * MIB


def test_raw_bytes_beyond_one_frame_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "raw"
    with path.open("wb") as file:
        file.truncate(limits.MAX_INPUT_BYTES + 1)
    with pytest.raises(InputError, match=f"is larger than {limits.MAX_INPUT_BYTES} bytes"):
        read_bytes(f"@{path}")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"00" * 50_000 + b"0g", "'g' isn't a hex digit (digit 100002)"),
        (b"00" * 50_000 + b"0", "hex has an odd number of digits (100001); a byte is two"),
        (b"0011 \xff" * 20_000, "contains other bytes"),
        (dump_of(RAW[:64]) * 2, "line 5 of the dump is at 0x0, expected 0x40"),
        (base64.b64encode(RAW[:100]) + b"==" + b"abcd", "isn't hex, a hex dump or base64"),
    ],
)
def test_what_is_wrong_with_long_text_is_said_with_its_place(text: bytes, reason: str) -> None:
    with pytest.raises(InputError) as error:
        parse_long([text[at : at + 300] for at in range(0, len(text), 300)])
    assert reason in str(error.value)


def test_packets_of_a_dump_are_bounded() -> None:
    """MAX_DUMPED_PACKETS: each takes more than its row."""
    row = "\t0x0000:  4500 0028\n"
    most = limits.MAX_DUMPED_PACKETS
    for count, reason in ((most, "packets carry data"), (most + 1, f"more than {most} packets")):
        with pytest.raises(InputError, match=reason):
            parse_text(row * count, "dump")
