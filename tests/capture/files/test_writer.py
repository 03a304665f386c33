"""What the pcapng writer writes, our reader and tshark read back."""

import shutil
import subprocess
from io import BytesIO
from pathlib import Path

import pytest

from kafkascope.capture.files.writer import PcapngWriter
from tests.support.hexes import hexes
from tests.support.packet_build import Talk, pcapng
from tests.support.recordings import Seen, read


def test_writes_these_bytes() -> None:
    file = BytesIO()
    PcapngWriter(file).write(0x0102030405060708, b"abcde", original=9)
    assert file.getvalue() == hexes("""
        0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000   # section, little endian, length not said
        01000000 20000000 0100 0000 00000000                             # interface: Ethernet, no snap length
        0900 0100 09000000 0000 0000 20000000                            # nanoseconds, end of options
        06000000 28000000 00000000 04030201 08070605                     # packet: interface 0, time
        05000000 09000000 6162636465 000000 28000000                     # 5 bytes of 9, padded
    """)


def test_reads_back_packets_of_several_interfaces() -> None:
    file = BytesIO()
    writer = PcapngWriter(file, name="eth0")
    tunnel = writer.add_interface(link=101, snap_length=96, name="wg0")
    for size in range(9):
        writer.write(1_700_000_000_000_000_000 + size, bytes(size), interface=size % 2 * tunnel)
    assert read(file.getvalue()) == (
        [Seen(1_700_000_000_000_000_000 + size, 101 if size % 2 else 1, size, bytes(size)) for size in range(9)],
        [],
    )


def test_refuses_an_interface_that_was_not_added() -> None:
    with pytest.raises(ValueError, match="unknown interface 1"):
        PcapngWriter(BytesIO()).write(0, b"", interface=1)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not there to judge")
def test_tshark_reads_the_same_packets(tmp_path: Path) -> None:
    talk = Talk().open().say(0, b"x" * 4000).say(1, b"y").close()
    path = tmp_path / "talk"
    path.write_bytes(pcapng(talk.packets))
    fields = ("frame.time_epoch", "frame.len", "tcp.srcport", "tcp.len", "tcp.seq_raw")
    done = subprocess.run(
        ["tshark", "-r", path, "-T", "fields", *(part for field in fields for part in ("-e", field))],
        capture_output=True, text=True, timeout=60, check=True, env={"PATH": "/usr/bin:/bin", "TZ": "UTC"},
    )  # fmt: skip
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [int(row[1]) for row in rows] == [len(packet) for _, packet in talk.packets]
    assert [int(row[3]) for row in rows] == [0, 0, 0, 1448, 1448, 1104, 1, 0, 0, 0]
    assert [int(row[2]) for row in rows] == [40000, 9092, 40000, 40000, 40000, 40000, 9092, 40000, 9092, 40000]
    assert int(rows[3][4]) == 1001
