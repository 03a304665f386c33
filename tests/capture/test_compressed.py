"""Compressed recordings give what the plain one gives; cut ones give all that lies before the cut, block by block."""

import gzip
import lzma
import shutil
import subprocess
import tracemalloc
from collections.abc import Callable
from functools import partial
from io import BytesIO
from random import Random

import cramjam
import pytest

from kafkascope.capture.files.decompress import Decompressor
from kafkascope.capture.files.packets import read_packets
from kafkascope.capture.files.source import Source
from kafkascope.errors import InputError
from tests.support.packet_build import pcap
from tests.support.recordings import Drip, Seen, read

RANDOM = Random(20)
# Half of it does not compress, so that there are many blocks.
PACKETS = [(1_700_000_000_000_000_000 + number, (RANDOM.randbytes(300) + bytes(300)) * 2) for number in range(1_000)]
PLAIN = pcap(PACKETS, nano=True)
SEEN = [Seen(time_ns, 1, len(packet), packet) for time_ns, packet in PACKETS]


def command(*arguments: str) -> Callable[[bytes], bytes]:
    def run(data: bytes) -> bytes:
        if shutil.which(arguments[0]) is None:
            pytest.skip(f"{arguments[0]} is not there")
        return subprocess.run(arguments, input=data, capture_output=True, check=True, timeout=60).stdout

    return run


def whole(module: str) -> Callable[[bytes], bytes]:
    return lambda data: bytes(getattr(cramjam, module).compress(data))


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": partial(gzip.compress, mtime=0),
    "xz": lzma.compress,
    "zstd": whole("zstd"),
    "zstd with checksum": command("zstd", "-c", "--check"),
    "zstd with size": lambda data: command("zstd", "-c", f"--stream-size={len(data)}")(data),
    "zstd long window": command("zstd", "-c", "--long=27", "-19"),
    "lz4": whole("lz4"),
    "lz4 with size": command("lz4", "-c", "-B4", "--content-size"),
    "lz4 linked blocks": command("lz4", "-c", "-BD", "-B4"),
    "lz4 with block checksums": command("lz4", "-c", "-BX", "-B5"),
}
packed = pytest.mark.parametrize("form", PACK)


@packed
def test_compressed_is_read_like_plain(form: str) -> None:
    assert read(PACK[form](PLAIN)) == (SEEN, [])


@packed
def test_frames_behind_one_another_are_read_as_one_file(form: str) -> None:
    half = len(PLAIN) // 2
    assert read(PACK[form](PLAIN[:half]) + PACK[form](PLAIN[half:])) == (SEEN, [])


@packed
def test_fed_one_byte_at_a_time_it_is_the_same(form: str) -> None:
    assert read(Drip(PACK[form](pcap(PACKETS[:20], nano=True)))) == (SEEN[:20], [])


@packed
def test_small_files_are_read(form: str) -> None:
    for count in (1, 2, 3):
        assert read(PACK[form](pcap(PACKETS[:count], nano=True))) == (SEEN[:count], [])


@packed
def test_cut_anywhere_all_before_the_cut_is_kept_and_told(form: str) -> None:
    data = PACK[form](PLAIN)
    random = Random(3)
    for cut in sorted({len(data) - 1, len(data) - 3, *(random.randrange(200_000, len(data)) for _ in range(25))}):
        packets, problems = read(data[:cut])
        assert packets == SEEN[: len(packets)]
        assert "compression" in [problem.kind for problem in problems]
        # About half of the plain bytes are packed; one block of 256 KiB or less may be unfinished.
        least = (cut - 262_144) * 1.5 / 1200
        assert len(packets) >= least, (cut, len(packets))


@pytest.mark.parametrize("form", ["zstd", "zstd with checksum", "lz4", "lz4 linked blocks", "lz4 with block checksums"])
def test_what_stands_in_the_whole_blocks_before_a_cut_is_kept_to_the_byte(form: str) -> None:
    data = PACK[form](PLAIN)
    end = len(data) - (8 if form.startswith("lz4") else 4 if "checksum" in form else 0)
    source = Source(Drip(data[: end - 1], 100_000))  # type: ignore[arg-type]
    unpacked = Decompressor(source)
    out = bytearray()
    buffer = bytearray(1 << 20)
    while count := unpacked.fill(memoryview(buffer)):
        out += buffer[:count]
    assert PLAIN.startswith(out)
    # Blocks of zstd hold 128 KiB, the largest of these lz4 forms 256 KiB.
    assert len(PLAIN) - len(out) <= 262_144
    assert unpacked.problem is not None


@packed
def test_broken_data_costs_nothing_far_before_it(form: str) -> None:
    data = PACK[form](PLAIN)
    random = Random(4)
    for _ in range(25):
        broken = bytearray(data)
        at = random.randrange(len(data) // 2, len(data))
        broken[at : at + 4] = random.randbytes(4)
        packets, _ = read(bytes(broken))
        assert packets[:100] == SEEN[:100]


def test_a_text_in_gzip_is_refused_by_its_content() -> None:
    with pytest.raises(InputError, match=r"not a recording: .* this is text \(inside gzip\)"):
        read(gzip.compress(b"hello\n" * 100))


@pytest.mark.parametrize("form", ["gzip", "xz", "zstd", "lz4"])
def test_memory_stays_flat_whatever_unpacks(form: str) -> None:
    data = PACK[form](pcap([(0, bytes(1_000_000))] * 60, snap_length=1_000_000))
    assert len(data) < 1_000_000
    read(PACK[form](PLAIN), chunk_bytes=1 << 21)
    tracemalloc.start()

    count = sum(len(batch.start) for batch in read_packets(BytesIO(data), chunk_bytes=1 << 21))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 60
    assert peak < 24 << 20
