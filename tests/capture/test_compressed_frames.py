"""What the formats allow around and between their frames is no damage: padding, skippable and empty frames."""

import gzip
import lzma
import struct
from collections.abc import Callable
from functools import partial
from random import Random

import cramjam
import pytest

from kafkascope.errors import InputError
from tests.support.packet_build import pcap
from tests.support.recordings import Drip, Seen, read

RANDOM = Random(21)
PACKETS = [(1_700_000_000_000_000_000 + number, RANDOM.randbytes(200) + bytes(200)) for number in range(30)]
PLAIN = pcap(PACKETS, nano=True)
SEEN = [Seen(time_ns, 1, len(packet), packet) for time_ns, packet in PACKETS]
THIRDS = [PLAIN[:4], PLAIN[4:5_000], PLAIN[5_000:]]

PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": partial(gzip.compress, mtime=0),
    "xz": lzma.compress,
    "zstd": lambda data: bytes(cramjam.zstd.compress(data)),
    "lz4": lambda data: bytes(cramjam.lz4.compress(data)),
}
packed = pytest.mark.parametrize("form", PACK)


def skippable(size: int, number: int = 0) -> bytes:
    return struct.pack("<II", 0x184D2A50 + number, size) + RANDOM.randbytes(size)


# RFC 1952 says nothing of zeros behind a member, and gzip takes them; xz pads in steps of four bytes.
BETWEEN = [
    *(("gzip", bytes(size)) for size in (1, 3, 512, 70_000)),
    *(("xz", bytes(size)) for size in (4, 512, 140_000)),
    *((form, skippable(size)) for form in ("zstd", "lz4") for size in (0, 1, 5, 100_000)),
    *((form, skippable(3, 15) + skippable(0, 7)) for form in ("zstd", "lz4")),
    *((form, PACK[form](b"")) for form in PACK),
]
between = pytest.mark.parametrize(("form", "what"), BETWEEN, ids=[f"{form}-{len(what)}" for form, what in BETWEEN])
sizes = pytest.mark.parametrize("size", [1, 7, 1_000_000])


@sizes
@between
def test_what_may_stand_between_and_behind_frames_is_no_damage(form: str, what: bytes, size: int) -> None:
    parts = [PACK[form](part) for part in THIRDS]
    assert read(Drip(parts[0] + what + parts[1] + what + what + parts[2] + what, size)) == (SEEN, [])


@sizes
@pytest.mark.parametrize("number", [0, 15])
@pytest.mark.parametrize("length", [0, 1, 5, 100_000])
@pytest.mark.parametrize("form", ["zstd", "lz4"])
def test_skippable_frames_may_come_first_of_both_formats(form: str, length: int, number: int, size: int) -> None:
    for count in (1, 3):
        assert read(Drip(skippable(length, number) * count + PACK[form](PLAIN), size)) == (SEEN, [])


@sizes
@packed
def test_an_empty_frame_may_come_first(form: str, size: int) -> None:
    assert read(Drip(PACK[form](b"") + PACK[form](PLAIN), size)) == (SEEN, [])


@sizes
@pytest.mark.parametrize("form", ["zstd", "lz4"])
def test_a_file_cut_inside_a_skippable_frame_is_told(form: str, size: int) -> None:
    for cut in (1, 99, 100, 103, 105):
        packets, problems = read(Drip(PACK[form](PLAIN) + skippable(100)[:-cut], size))
        assert packets == SEEN
        assert [(problem.kind, problem.detail) for problem in problems] == [
            ("compression", f"the {form} data is cut"),
        ]
        if cut < 105:  # it has its magic
            with pytest.raises(InputError, match="the zstd or lz4 data is cut"):
                read(Drip(skippable(100)[:-cut], size))


@pytest.mark.parametrize("form", ["xz", "gzip"])
def test_what_stands_behind_the_padding_is_told(form: str) -> None:
    packets, problems = read(PACK[form](PLAIN) + bytes(8) + b"something else")
    assert packets == SEEN
    assert [problem.kind for problem in problems] == ["compression"]
    assert problems[0].detail.startswith(f"the {form} data is broken (")


@packed
def test_a_cut_behind_the_padding_is_told(form: str) -> None:
    what = bytes(8) if form in ("gzip", "xz") else skippable(8)
    half = PACK[form](PLAIN[:5_000])
    rest = PACK[form](PLAIN[5_000:])
    for cut in (len(rest) - 3, len(rest) // 2, 1):
        packets, problems = read(half + what + rest[:-cut])
        assert packets == SEEN[: len(packets)]
        assert len(packets) >= 11
        assert (problems[-1].kind, problems[-1].detail) == ("compression", f"the {form} data is cut")


def test_a_file_of_skippable_frames_alone_has_nothing_in_it() -> None:
    with pytest.raises(InputError, match="it is empty"):
        read(skippable(5) + skippable(0))
