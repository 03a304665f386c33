"""Acquired ranges against record data: what is a record, what is a gap, and what must not be called one."""

import random
from dataclasses import replace

import pytest

from kafkascope.client.share.records import find_records
from kafkascope.client.share.values import Acknowledge, AcknowledgeRange, Acquired
from kafkascope.codec.records.record_data import Record, RecordBatch, encode_records, new_batch

GAP, RELEASE, REJECT = Acknowledge.GAP, Acknowledge.RELEASE, Acknowledge.REJECT


def batch(*offsets: int, compression: str = "none", control: bool = False, last: int | None = None) -> RecordBatch:
    made = new_batch(
        [Record(offset, 1_000 + offset, b"\0\0\0\0" if control else None, b"v%d" % offset) for offset in offsets],
        compression=compression,
        is_control=control,
        is_transactional=control,
    )
    return made if last is None else replace(made, last_offset_delta=last - made.base_offset)


def test_all_records_of_whole_batches_are_found_with_their_delivery_counts() -> None:
    data = encode_records([batch(0, 1, 2), batch(3, 4, compression="zstd")])
    contents = find_records(data, (Acquired(0, 1, 1), Acquired(2, 4, 3)))
    assert [record.offset for record in contents.records] == [0, 1, 2, 3, 4]
    assert contents.delivery_counts == [1, 1, 3, 3, 3]
    assert (contents.others, contents.problems) == ([], [])


def test_records_that_were_not_acquired_are_left_out() -> None:
    contents = find_records(encode_records([batch(*range(10))]), (Acquired(2, 3, 1), Acquired(7, 7, 1)))
    assert [record.offset for record in contents.records] == [2, 3, 7]


def test_offsets_without_a_record_are_gaps() -> None:
    """Compaction leaves holes within and between batches, and at their ends."""
    data = encode_records([batch(1, 3, last=5), batch(8)])
    contents = find_records(data, (Acquired(0, 8, 1),))
    assert [record.offset for record in contents.records] == [1, 3, 8]
    expected = [(0, 0), (2, 2), (4, 7)]
    assert contents.others == [AcknowledgeRange(first, last, GAP) for first, last in expected]


def test_control_batches_are_gaps() -> None:
    contents = find_records(encode_records([batch(0), batch(1, control=True), batch(2)]), (Acquired(0, 2, 1),))
    assert [record.offset for record in contents.records] == [0, 2]
    assert contents.others == [AcknowledgeRange(1, 1, GAP)]


def test_a_corrupt_batch_is_rejected_and_reported() -> None:
    data = bytearray(encode_records([batch(0, 1), batch(2, 3)]))
    data[20] ^= 1
    contents = find_records(bytes(data), (Acquired(0, 3, 1),))
    assert [record.offset for record in contents.records] == [2, 3]
    assert contents.others == [AcknowledgeRange(0, 1, REJECT)]
    assert len(contents.problems) == 1


def test_acquired_offsets_after_the_data_are_released_and_never_called_gaps() -> None:
    data = encode_records([batch(0, 1), batch(2, 3)])
    contents = find_records(data[:-5], (Acquired(0, 3, 1),))
    assert [record.offset for record in contents.records] == [0, 1]
    assert contents.others == [AcknowledgeRange(2, 3, RELEASE)]
    assert len(contents.problems) == 1
    assert find_records(b"", (Acquired(0, 2**62, 1),)).others == [AcknowledgeRange(0, 2**62, RELEASE)]


def test_a_batch_that_cannot_be_read_is_released_and_hides_no_other() -> None:
    whole = replace(batch(2, 3), attributes=1, records=None, payload=b"no gzip at all")
    data = encode_records([batch(0, 1), whole, batch(4)])
    contents = find_records(data, (Acquired(0, 4, 1),))
    assert [record.offset for record in contents.records] == [0, 1, 4]
    assert contents.others == [AcknowledgeRange(2, 3, RELEASE)] and contents.problems


def test_batches_out_of_order_are_not_handed_out() -> None:
    contents = find_records(encode_records([batch(5, 6), batch(0, 1)]), (Acquired(0, 6, 1),))
    assert [record.offset for record in contents.records] == [5, 6]
    assert contents.problems


@pytest.mark.parametrize("seed", range(40))
def test_each_acquired_offset_is_a_record_or_has_one_other_end(seed: int) -> None:
    chance = random.Random(seed)
    offsets = sorted(chance.sample(range(60), 30))
    cuts = sorted(chance.sample(range(1, 30), 5))
    parts = [offsets[start:end] for start, end in zip([0, *cuts], [*cuts, 30], strict=True)]
    data = encode_records([batch(*part, compression=chance.choice(("none", "lz4"))) for part in parts])
    ranges: list[Acquired] = []
    position = 0
    while position < 60:
        first = position + chance.randint(0, 3)
        last = first + chance.randint(0, 9)
        ranges.append(Acquired(first, last, chance.randint(1, 3)))
        position = last + 1
    contents = find_records(data, tuple(ranges))
    handed = [record.offset for record in contents.records]
    others = [offset for part in contents.others for offset in range(part.first, part.last + 1)]
    acquired = [offset for part in ranges for offset in range(part.first, part.last + 1)]
    assert sorted(handed + others) == acquired
    assert set(handed) == set(offsets) & set(acquired)
    for part in contents.others:
        expected = GAP if part.first <= offsets[-1] else RELEASE
        assert part.type == expected or part.last > offsets[-1]
