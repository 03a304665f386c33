"""Record data in columns: one row a batch by its header, the codec's verdict on what is no batch; contents if asked."""

from dataclasses import replace
from random import Random
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from kafkascope import limits
from kafkascope.codec.message import encode
from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from kafkascope.columnar.decode import decode_columns, full_schema
from kafkascope.columnar.secrets import METADATA_TOPIC, METADATA_TOPIC_ID
from tests.columnar.expected import expected, without_nulls
from tests.support.mutations import KINDS

SEED = 5
RECORDS = [Record(40 + n, 1_763_200_000_000 + n, b"key", b"secret value", (("h", b"1"), ("n", None))) for n in range(3)]
BARE = [Record(40 + n, 1_763_200_000_000 + n, None, b"v" * n) for n in range(3)]


def produce(data: bytes | None, version: int = 9) -> bytes:
    partitions = [{"index": 0, "records": data}]
    return encode("ProduceRequest", version, {"topicData": [{"name": "orders", "partitionData": partitions}]})


def batches() -> list[bytes]:
    """Every magic and compression, transactional and control, empty, several in a row, cut at the end."""
    made = []
    for magic, compressions in ((2, "none gzip snappy lz4 zstd"), (1, "none gzip snappy lz4"), (0, "none gzip lz4")):
        for compression in compressions.split():
            records = RECORDS if magic == 2 else BARE if compression != "none" else BARE[:1]
            made.append(encode_records([new_batch(records, magic=magic, compression=compression)]))
    plain = new_batch(RECORDS)
    made.append(encode_records([replace(plain, attributes=0b110000, producer_id=7, producer_epoch=2)]))
    made.append(
        encode_records([replace(plain, base_offset=2**63 - 1, last_offset_delta=2**31 - 1, records=None, payload=b"")])
    )
    joined = made[0] + made[3] + made[0]
    return [*made, joined, joined[:-5], joined[: len(made[0]) + 11], joined[: len(made[0]) + 17], b"", b"\0" * 40]


def rows(frames: list[bytes], version: int = 9) -> list[Any]:
    table = decode_columns("ProduceRequest", version, pa.array(frames, type=pa.binary()))
    table.validate(full=True)
    values: list[Any] = table.to_pylist()
    return values


def same_as_codec(frames: list[bytes], version: int = 9) -> None:
    for frame, row in zip(frames, rows(frames, version), strict=True):
        values = expected(("ProduceRequest", version, None), frame)
        assert without_nulls(row) == without_nulls(values), f"seed {SEED}: {frame.hex()}"


@pytest.mark.parametrize("version", [3, 9])
def test_batches_of_every_magic_are_rows(version: int) -> None:
    same_as_codec([produce(data, version) for data in [*batches(), None]], version)


def test_a_batch_has_its_header_and_not_its_records() -> None:
    data = encode_records([new_batch(RECORDS)])
    records = rows([produce(data)])[0]["topic_data"][0]["partition_data"][0]["records"]
    batch = records["batches"][0]
    assert (records["size"], records["truncated_bytes"], len(records["batches"])) == (len(data), 0, 1)
    assert (batch["base_offset"], batch["last_offset"], batch["records"], batch["magic"]) == (40, 42, 3, 2)
    assert (batch["base_timestamp"], batch["max_timestamp"]) == (1_763_200_000_000, 1_763_200_000_002)
    assert b"secret" not in repr(records).encode()


def test_mutated_record_data_gets_the_codecs_verdict() -> None:
    frames = []
    for number, data in enumerate(batches()):
        for case in range(300):
            random = Random(f"{SEED} {number} {case}")
            frames.append(produce(random.choice(KINDS[:6])(data, (), random)))
        # Every byte of the headers, once with its high bit turned and once 7.
        for at in range(min(len(data), 70)):
            frames += [produce(data[:at] + bytes([byte]) + data[at + 1 :]) for byte in (data[at] ^ 0x80, 7)]
    same_as_codec(frames)


def test_as_many_batches_as_the_codec_reads() -> None:
    """One batch more is no record data to either engine."""
    least = encode_records([new_batch([Record(0, -1, None, None)], magic=0)])
    assert len(least) == 26
    for count, nulls in ((limits.MAX_RECORD_ITEMS, 0), (limits.MAX_RECORD_ITEMS + 1, 1)):
        table = decode_columns("ProduceRequest", 9, pa.array([produce(least * count)], type=pa.binary()))
        topics = table["topic_data"].combine_chunks().flatten()
        batches = topics.field("partition_data").flatten().field("records").field("batches")
        assert (batches.null_count, len(batches.flatten())) == (nulls, 0 if nulls else count)


def contents(name: str, version: int, value: dict[str, Any]) -> pa.Table:
    frames = pa.array([encode(name, version, value), b"\xff"], type=pa.binary())
    table = decode_columns(name, version, frames, contents=True)
    table.validate(full=True)
    assert table.schema == full_schema(name, contents=True)
    assert [error is None for error in table["_error"].to_pylist()] == [True, False]
    return table


def fetch(version: int, topic: dict[str, Any], data: bytes) -> list[Any]:
    value = {"responses": [{**topic, "partitions": [{"partitionIndex": 0, "records": data}]}]}
    row = contents("FetchResponse", version, value).to_pylist()[0]
    batches = row["responses"][0]["partitions"][0]["records"]["batches"]
    assert isinstance(batches, list)
    return batches


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_contents_are_there_when_asked_for(compression: str) -> None:
    data = encode_records([new_batch(RECORDS, compression=compression)])
    batch = fetch(12, {"topic": "orders"}, data)[0]
    assert batch["records"] == 3
    assert batch["contents"] == [
        {
            "offset": 40 + n,
            "timestamp": 1_763_200_000_000 + n,
            "key": b"key",
            "value": b"secret value",
            "headers": [{"key": "h", "value": b"1"}, {"key": "n", "value": None}],
        }
        for n in range(3)
    ]


def test_contents_that_cannot_be_unpacked_leave_the_header() -> None:
    data = encode_records([new_batch(RECORDS, compression="zstd")])
    batch = fetch(12, {"topic": "orders"}, data[:-3] + b"\0\0\0")[0]
    assert (batch["records"], batch["contents"]) == (3, None)


def test_contents_of_the_metadata_log_are_never_there() -> None:
    data = encode_records([new_batch(RECORDS)])
    assert fetch(12, {"topic": METADATA_TOPIC}, data)[0]["contents"] is None
    assert fetch(13, {"topicId": METADATA_TOPIC_ID}, data)[0]["contents"] is None
    assert fetch(13, {"topicId": UUID(int=2)}, data)[0]["contents"] is not None
    snapshot = {"topics": [{"name": "any", "partitions": [{"index": 0, "unalignedRecords": data}]}]}
    row = contents("FetchSnapshotResponse", 0, snapshot).to_pylist()[0]
    assert row["topics"][0]["partitions"][0]["unaligned_records"]["batches"][0]["contents"] is None
