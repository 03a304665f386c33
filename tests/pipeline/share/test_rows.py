"""Rows made in C and rows made of records are the same, whatever the bytes; only offsets of the ranges become rows."""

import random
from dataclasses import replace
from uuid import UUID

import pyarrow as pa
import pytest

from kafkascope.client.share.values import SharePartition
from kafkascope.codec.records import fast_records
from kafkascope.codec.records.record_data import Record, decode_records, encode_records, new_batch
from kafkascope.errors import DecodeError
from kafkascope.pipeline.share.batch_offset import LoggedRange, PartitionRanges
from kafkascope.pipeline.share.rows import SHARE_SCHEMA, Rows
from tests.support.mutations import delete_bytes, flip_bit, insert_bytes, set_byte

SEEDS = range(200)
EDITS = (flip_bit, set_byte, insert_bytes, delete_bytes)
APPEND_TIME = 1 << 3
needs_native = pytest.mark.skipif(fast_records.native is None, reason="built without a compiler")


def made(source: random.Random) -> bytes:
    """A few batches, some with all that records can have."""
    batches, offset = [], source.randint(0, 50)
    for _ in range(source.randint(1, 4)):
        records = []
        for _ in range(source.randint(1, 30)):
            names = ("trace", "", "ключ") if source.random() < 0.1 else ("trace", "")
            headers = tuple((source.choice(names), content(source)) for _ in range(source.choice((0, 0, 0, 1, 3))))
            time = source.choice((1_700_000_000_000, -1, 0, 2**62 if source.random() < 0.02 else 7))
            records.append(Record(offset, time, content(source), content(source), headers))
            offset += source.choice((1, 1, 1, 3))
        batch = new_batch(records, compression=source.choice(("none", "none", "gzip", "zstd", "lz4", "snappy")))
        if source.random() < 0.2:
            batch = decode_records(encode_records([batch]), unpack=False).batches[0]
            batch = replace(batch, attributes=batch.attributes | APPEND_TIME)
        batches.append(batch)
    return encode_records(batches)


def content(source: random.Random) -> bytes | None:
    return source.choice((None, b"", b"k", source.randbytes(source.randint(1, 200))))


def ranges(source: random.Random) -> tuple[LoggedRange, ...]:
    parts: list[LoggedRange] = []
    first = source.randint(0, 60)
    while first < 250:
        last = first + source.choice((0, 3, 40, 200))
        parts.append(LoggedRange(first, last, source.randint(1, 3), source.randint(0, 30_000)))
        first = last + source.randint(2, 20)
    return tuple(parts)


def table(data: bytes, parts: tuple[LoggedRange, ...]) -> pa.Table | str:
    rows = Rows(PartitionRanges("orders", SharePartition(UUID(int=5), 2), 0, parts), 1_000)
    try:
        return pa.Table.from_batches(rows.of(data, decode_records(data, unpack=False).batches), SHARE_SCHEMA)
    except DecodeError as error:
        return str(error)


@needs_native
@pytest.mark.parametrize("damaged", [False, True])
def test_both_ways_make_the_same_rows(monkeypatch: pytest.MonkeyPatch, damaged: bool) -> None:
    cases = []
    for seed in SEEDS:
        source = random.Random(seed)
        data = made(source)
        if damaged:
            batch = decode_records(data, unpack=False).batches[0]
            payload = source.choice(EDITS)(batch.payload or b"", (), source)
            data = encode_records([replace(batch, payload=payload)])
        cases.append((data, ranges(source)))
    native = [table(data, parts) for data, parts in cases]
    monkeypatch.setattr(fast_records, "native", None)
    for seed, (data, parts), rows in zip(SEEDS, cases, native, strict=True):
        assert rows == table(data, parts), seed
    assert sum(not isinstance(rows, str) and len(rows) > 0 for rows in native) > len(SEEDS) / 10


def test_rows_are_the_records_of_the_ranges() -> None:
    for seed in SEEDS[:50]:
        source = random.Random(seed)
        data, parts = made(source), ranges(source)
        rows = table(data, parts)
        assert isinstance(rows, pa.Table)
        expected = [
            (record.offset, record.key, record.value, [(name, held) for name, held in record.headers], part[2], part[3])
            for batch in decode_records(data).batches
            for record in batch.records or ()
            for part in parts
            if part.first <= record.offset <= part.last
        ]
        untils = rows["_lock_until"].cast(pa.int64()).to_pylist()
        converted = [
            (
                row["offset"],
                row["key"],
                row["value"],
                [(h["key"], h["value"]) for h in row["headers"]],
                row["_delivery_count"],
                until // 1_000 - 1_000,
            )
            for row, until in zip(rows.to_pylist(), untils, strict=True)
        ]
        assert converted == expected, seed
