"""Packed bytes of every compression unpack to what they were, and none to more than the limit."""

import json
import subprocess
import sys
from pathlib import Path

import cramjam
import pytest

from kafkascope import limits
from kafkascope.codec.records.budget import Budget
from kafkascope.codec.records.compression import XERIAL_MAGIC, pack, unpack
from kafkascope.codec.records.lz4_frame import write_frame
from kafkascope.codec.records.record_batch import HEADER_BYTES
from kafkascope.codec.records.record_data import Record, decode_records, encode_records, new_batch
from kafkascope.errors import DecodeError
from tests.support.hexes import hexes
from tests.support.record_data import MEBIBYTE, PACKINGS, batch_around, zeros

ROOT = Path(__file__).resolve().parents[3]
# zstd is for magic 2 alone.
MAGICS = [(packing, magic) for packing in PACKINGS for magic in (0, 1, 2) if packing != "zstd" or magic == 2]

# What decoding adds to the largest memory the process ever had, in bytes.
MEASURE = """
import json, resource, sys
from kafkascope.codec.records.record_batch import HEADER_BYTES
from kafkascope.codec.records.record_data import Record, decode_records, encode_records, new_batch
from kafkascope.errors import DecodeError
from tests.support.record_data import PACKINGS, batch_around, zeros

bomb = batch_around(zeros(sys.argv[1], 1024), PACKINGS[sys.argv[1]])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decode_records(bomb)
except DecodeError as error:
    said = str(error)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"said": said, "packed": len(bomb), "grown": (after - before) * 1024}))
"""


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("data", [b"", b"k", b"kafka" * 50_000, bytes(range(256)) * 300, bytes(300_000)])
def test_unpacks_what_it_packed(compression: str, magic: int, data: bytes) -> None:
    assert unpack(compression, pack(compression, data, magic), magic, Budget(), "batch[0]") == data


@pytest.mark.parametrize("packing", PACKINGS)
def test_unpacks_zeros_that_are_no_bomb(packing: str) -> None:
    assert unpack(PACKINGS[packing], zeros(packing, 3), 2, Budget(), "batch[0]") == bytes(3 * MEBIBYTE)


@pytest.mark.parametrize("packing", PACKINGS)
def test_unpacks_up_to_the_limit_and_not_one_byte_more(packing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = zeros(packing, 1)
    monkeypatch.setattr(limits, "MAX_UNPACKED_BYTES", MEBIBYTE)
    assert len(unpack(PACKINGS[packing], bomb, 2, Budget(), "batch[0]")) == MEBIBYTE
    monkeypatch.setattr(limits, "MAX_UNPACKED_BYTES", MEBIBYTE - 1)
    with pytest.raises(DecodeError, match=r"^batch\[0\]: decompresses to more than 1048575 bytes"):
        unpack(PACKINGS[packing], bomb, 2, Budget(), "batch[0]")


@pytest.mark.parametrize(("packing", "magic"), MAGICS)
def test_decompression_bomb_stops_at_the_limit(packing: str, magic: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_UNPACKED_BYTES", 100_000)
    bomb = batch_around(zeros(packing, 8), PACKINGS[packing], magic)
    with pytest.raises(DecodeError, match=r"^batch\[0\]: decompresses to more than 100000 bytes"):
        decode_records(bomb)


@pytest.mark.parametrize("packing", PACKINGS)
def test_real_bomb_of_a_gibibyte_takes_no_more_memory_than_the_limit(packing: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, packing], cwd=ROOT, capture_output=True, text=True, timeout=300, check=True
    )
    measured = json.loads(done.stdout)
    print(f"\n{packing}: {measured['packed']} bytes packed, {measured['grown']} bytes more memory")
    assert measured["said"].startswith(f"batch[0]: decompresses to more than {limits.MAX_UNPACKED_BYTES} bytes")
    # The packed bytes are cut out of the frame on the way, once or twice.
    assert measured["grown"] < limits.MAX_UNPACKED_BYTES + 2 * measured["packed"] + 16 * MEBIBYTE


def test_batches_share_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [Record(0, 0, None, bytes(5_000))]
    unpacked = len(encode_records([new_batch(records)])) - HEADER_BYTES
    batch = encode_records([new_batch(records, compression="gzip")])
    monkeypatch.setattr(limits, "MAX_UNPACKED_BYTES", 3 * unpacked)
    assert len(decode_records(batch * 3).batches) == 3
    with pytest.raises(DecodeError, match=r"^batch\[3\]: decompresses to more than"):
        decode_records(batch * 4)


def test_snappy_comes_in_xerial_framing_and_raw() -> None:
    """snappy-java frames its blocks, librdkafka writes one raw block (protocol note 34)."""
    raw = hexes("""
        08          # eight bytes unpacked
        0c 6b61666b # a literal of four, "kafk"
        01 04       # a copy of four from four back
    """)
    framed = hexes("""
        82 534e41505059 00      # 0x82 "SNAPPY" 0x00
        00000001 00000001       # version, oldest version that can read it
        00000008                # a block of eight bytes
        08 0c 6b61666b 01 04    # the raw block
        00000003 01 00 2e       # another: one byte, "."
    """)
    assert unpack("snappy", raw, 2, Budget(), "batch[0]") == b"kafkkafk"
    assert unpack("snappy", framed, 2, Budget(), "batch[0]") == b"kafkkafk."
    assert unpack("snappy", framed + framed, 2, Budget(), "batch[0]") == b"kafkkafk." * 2


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("00000009 08", r"snappy block of 9 bytes, 1 left \(offset 16 of the compressed data\)"),
        ("ffffffff 08", r"snappy block of -1 bytes, 1 left"),
        ("00000000 08", r"snappy block of 0 bytes, 1 left"),
        ("0000", r"snappy block of 0 bytes, 0 left"),
    ],
)
def test_rejects_xerial_block_longer_than_its_stream(block: str, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        unpack("snappy", XERIAL_MAGIC + bytes(8) + bytes.fromhex(block), 2, Budget(), "batch[0]")


def test_rejects_snappy_length_that_its_bytes_cannot_make() -> None:
    announced = hexes("""
        ffffff7f    # 268,435,455 bytes unpacked
        00 00       # one literal byte
    """)
    with pytest.raises(DecodeError, match="block of 6 bytes can't contain the 268435455 that it announces"):
        unpack("snappy", announced, 2, Budget(), "batch[0]")


def test_lz4_header_checksum_of_magic_0_is_wrong_and_read() -> None:
    """It hashes the frame's magic too (protocol note 34, KIP-57); from magic 1 on it is right and checked."""
    right = hexes("""
        04224d18        # the frame's magic
        60 40 82        # independent blocks, of 64 KiB at most, checksum of these two bytes
        01000080 2e     # a block of one byte, stored as it is: "."
        00000000        # the end
    """)
    broken = right[:6] + b"\x1a" + right[7:]
    assert write_frame(b".", broken_checksum=False) == right
    assert write_frame(b".", broken_checksum=True)[:6] == right[:6]
    assert write_frame(b".", broken_checksum=True)[6] != right[6]
    for frame in (right, broken, write_frame(b".", broken_checksum=True)):
        assert unpack("lz4", frame, 0, Budget(), "batch[0]") == b"."
    assert unpack("lz4", right, 1, Budget(), "batch[0]") == b"."
    with pytest.raises(DecodeError, match="aren't lz4"):
        unpack("lz4", broken, 1, Budget(), "batch[0]")


def test_lz4_header_checksum_is_found_behind_a_content_size() -> None:
    frame = bytes(cramjam.lz4.compress(b"kafka" * 9))
    sized = hexes("""
        04224d18            # the frame's magic
        68 40               # with a content size
        2d00000000000000    # 45
        00                  # a checksum that is wrong
    """)
    sized += write_frame(b"kafka" * 9, broken_checksum=False)[7:]
    assert unpack("lz4", frame, 0, Budget(), "batch[0]") == b"kafka" * 9
    assert unpack("lz4", sized, 0, Budget(), "batch[0]") == b"kafka" * 9


def test_lz4_blocks_are_written_independent() -> None:
    """Kafka's reader refuses dependent ones; the bit is 0x20 of the first descriptor byte."""
    assert pack("lz4", bytes(200_000), 2)[4] & 0x20


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("data", [b"", b"\x00" * 40, b"not packed at all", b"\xff" * 7])
def test_bytes_of_another_kind_are_a_decode_error(compression: str, data: bytes) -> None:
    with pytest.raises(DecodeError, match=r"^batch\[0\]: ") as caught:
        unpack(compression, data, 2, Budget(), "batch[0]")
    assert "packed at" not in str(caught.value)
