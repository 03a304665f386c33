"""Damaged segments: what is damaged has a kind and a place, and everything that can be read is read."""

import random
from pathlib import Path

import pytest

from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from kafkascope.logs.batches import Batch, Damage, DamageKind
from tests.logs.recorded import PACKED, batches_of, items_of, offsets


@pytest.fixture
def segment(tmp_path: Path, disks: Path) -> Path:
    """A copy, with room for damage."""
    path = tmp_path / "packed-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes((disks / "node-1" / PACKED).read_bytes())
    return path


def test_a_tail_torn_at_any_byte_loses_only_its_batch(segment: Path) -> None:
    data = segment.read_bytes()
    batches = batches_of(segment)
    torn = batches[-2]
    before = [batch.header.base_offset for batch in batches[:-2]]
    for end in range(torn.position, torn.position + torn.size):
        segment.write_bytes(data[:end])
        items = items_of(segment)
        assert offsets(items) == before
        damages = [item for item in items if isinstance(item, Damage)]
        cut = end - torn.position
        assert [(d.kind, d.position, d.length) for d in damages] == (
            [(DamageKind.TORN_TAIL, torn.position, cut)] if cut else []
        )


def test_the_torn_tail_of_the_newest_segment_is_unfinished(segment: Path) -> None:
    segment.write_bytes(segment.read_bytes()[:-5])
    assert items_of(segment, last=True)[-1].kind is DamageKind.UNFINISHED  # type: ignore[union-attr]


def test_the_zeros_of_a_preallocated_file_end_it(segment: Path) -> None:
    expected = offsets(items_of(segment))
    segment.write_bytes(segment.read_bytes() + bytes(100_000))
    items = items_of(segment)
    assert offsets(items) == expected
    assert isinstance(items[-1], Damage)
    assert (items[-1].kind, items[-1].length) == (DamageKind.ZEROS, 100_000)


def test_any_bit_of_a_batch_can_flip_and_the_others_are_read(segment: Path) -> None:
    """Only the damaged batch is lost, or has a wrong checksum; offset and leader epoch aren't under it."""
    data = segment.read_bytes()
    batches = batches_of(segment)
    victim = batches[4]
    others = {batch.header.base_offset for batch in batches} - {victim.header.base_offset}
    for byte in range(victim.size):
        for bit in range(0, 8, 3):
            damaged = bytearray(data)
            damaged[victim.position + byte] ^= 1 << bit
            segment.write_bytes(damaged)
            items = items_of(segment)
            intact = {i.header.base_offset for i in items if isinstance(i, Batch) and i.header.crc_ok}
            assert others <= intact, (byte, bit)
            # Bytes 0-7 are the offset, 12-15 the leader epoch: a broker sets both, the checksum leaves them out.
            covered = not (byte < 8 or 12 <= byte < 16)
            reported = any(isinstance(i, Damage) or not i.header.crc_ok for i in items)
            assert reported or not covered, (byte, bit)


def test_lengths_sum_to_the_file_whatever_is_in_it(tmp_path: Path) -> None:
    """Nothing is counted twice and nothing left out: batches and damage tile the file."""
    seed = random.randrange(2**32)
    random_ = random.Random(seed)
    batch = encode_records([new_batch([Record(0, 1, b"k", b"v" * 50)])])
    path = tmp_path / f"{0:020}.log"
    for _ in range(300):
        pieces = [
            random_.choice([batch, batch[: random_.randrange(len(batch))], bytes(random_.randrange(90)),
                            random_.randbytes(random_.randrange(200))])
            for _ in range(random_.randrange(1, 7))
        ]  # fmt: skip
        path.write_bytes(b"".join(pieces))
        position = 0
        for item in items_of(path):
            assert item.position == position, seed
            position += item.size if isinstance(item, Batch) else item.length
        assert position == path.stat().st_size, seed


def test_a_batch_after_foreign_bytes_is_found(tmp_path: Path) -> None:
    batch = encode_records([new_batch([Record(7, 1, b"k", b"v" * 50)])])
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(b"foreign bytes, and no batch among them" * 3 + batch)
    items = items_of(path)
    assert offsets(items) == [7]
    assert isinstance(items[0], Damage)
    assert items[0].kind is DamageKind.BAD_HEADER


def test_a_long_run_of_plausible_headers_takes_linear_time(tmp_path: Path) -> None:
    """Each header announces a batch up to the end of the file: checking each of them would take hours."""
    size = 3_000_000
    head = bytearray(encode_records([new_batch([Record(0, 1, b"k", b"v")])]))
    data = bytearray()
    while len(data) < size - 1_000:
        head[8:12] = (size - len(data) - 12 - 100).to_bytes(4, "big")
        data += head[:61]
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(bytes(data))
    assert sum(item.length for item in items_of(path) if isinstance(item, Damage)) > size // 2
