"""Whatever is done to a recording: packets and segments or an `InputError`, and nothing points outside its data."""

import gzip
import os
from random import Random

import cramjam
import pytest

from kafkascope.capture.packets import read_packets
from kafkascope.errors import InputError
from tests.support.mutations import append_junk, delete_bytes, flip_bit, insert_bytes, random_bytes, set_byte
from tests.support.packet_build import (
    Talk,
    block,
    enhanced,
    ethernet,
    interface,
    ipv4,
    ipv4_fragments,
    ipv6,
    pcap,
    pcapng,
    section,
    tcp,
    vxlan,
)
from tests.support.recordings import Drip, segments

CASES = 20_000 if os.environ.get("KAFKASCOPE_SOAK") else 2_000
EDITS = (flip_bit, set_byte, set_byte, insert_bytes, delete_bytes, append_junk, random_bytes)
LENGTHS = (0, 1, 12, 16, 0x7FFF_FFFF, 0xFFFF_FFFF, 1_048_576, 1_048_577, 16_777_216, 24, 60)


def seeds() -> list[bytes]:
    packets = list(Talk().open().say(0, b"x" * 200).say(1, b"y" * 100).close().packets)
    packets += [
        (1, ethernet(piece)) for piece in ipv4_fragments("1.1.1.1", "2.2.2.2", tcp(1, 2, payload=bytes(100)), 40)
    ]
    packets += [(2, ethernet(ipv4("1.1.1.1", "2.2.2.2", vxlan(packets[3][1]), protocol=17)))]
    packets += [
        (3, ethernet(ipv6("::1", "::2", tcp(1, 2), extensions=[(0, bytes(7)), (44, bytes(7))]), tags=[(0x8100, 5)]))
    ]
    sections = b"".join(
        section(big=big) + interface(1, big=big) + interface(113, 64, big=big) + block(5, bytes(20), big=big)
        + b"".join(enhanced(packet, 5, number % 2, big=big) for number, (_, packet) in enumerate(packets))
        for big in (True, False)
    )  # fmt: skip
    plain = [pcap(packets), pcap(packets, big=True, nano=True), pcapng(packets), sections]
    return [
        *plain,
        *plain,
        gzip.compress(plain[0]),
        *(bytes(m.compress(plain[2])) for m in (cramjam.zstd, cramjam.lz4)),
    ]


def mutated(data: bytes, random: Random) -> bytes:
    for _ in range(random.choice((1, 1, 2, 5))):
        if random.random() < 0.4 and len(data) > 40:
            # A length somewhere: most fields of the headers are 32 bits, at multiples of four.
            at = random.randrange(len(data) // 4) * 4
            number = random.choice(LENGTHS).to_bytes(4, random.choice(("big", "little")))
            data = data[:at] + number + data[at + 4 :]
        else:
            edit = random.choice(EDITS)
            data = edit(data, (), random) if edit is not random_bytes else data[: random.randrange(len(data) + 1)]
    return data


@pytest.mark.parametrize("part", range(10))
def test_mutated_recordings_never_raise_anything_but_input_errors(part: int) -> None:
    read = 0
    known = seeds()
    for case in range(part, CASES, 10):
        random = Random(case)
        data = mutated(random.choice(known), random)
        source = data if random.random() < 0.7 else Drip(data, random.choice((1, 7, 100)))
        try:
            found, problems = segments(source, chunk_bytes=random.choice((512, 4096, 65_536)))
        except InputError:
            continue
        except Exception as error:
            raise AssertionError(f"case {case}: {type(error).__name__}: {error}") from error
        read += bool(found or problems)
    assert read > CASES / 20


def test_packets_lie_inside_their_data() -> None:
    known = seeds()
    for case in range(0, CASES, 4):
        random = Random(-case)
        data = mutated(random.choice(known), random)
        try:
            for batch in read_packets(Drip(data, 999), chunk_bytes=2048):  # type: ignore[arg-type]
                assert len(batch.start) == len(batch.link) == len(batch.time_ns)
                assert (batch.start >= 0).all() and (batch.captured >= 0).all() and (batch.original >= 0).all()
                assert (batch.start + batch.captured <= len(batch.data)).all()
        except InputError:
            pass
