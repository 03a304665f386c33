"""Record data of every magic and compression: we read what Java reads, Java reads what we write; damage is no crash."""

import re
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from kafkascope.codec.not_canonical import NotCanonical
from kafkascope.codec.records import fast_records, record_batch
from kafkascope.codec.records.budget import Budget
from kafkascope.codec.records.fast_records import SURPRISES
from kafkascope.codec.records.record_data import Record, decode_records, encode_records, new_batch
from kafkascope.codec.records.record_types import BatchStart
from kafkascope.codec.records.record_walk import RecordWalk
from kafkascope.errors import DecodeError
from tests.judge.records import made_by_java, read_by_java
from tests.support.mutations import append_junk, delete_bytes, flip_bit, insert_bytes, set_byte
from tests.support.record_data import as_java_says

pytestmark = pytest.mark.heavy

SEED = 20
MUTATIONS = 2_000
EDITS = (flip_bit, set_byte, insert_bytes, delete_bytes, append_junk)


def small_cases() -> list[bytes]:
    return [made.data for made in made_by_java() if 0 < len(made.data) < 3_000]


def read_here(data: bytes) -> Any:
    """In Java's words; a string where it could not be read."""
    try:
        return as_java_says(decode_records(data))
    except DecodeError as error:
        return str(error)


def mutated(random: Random) -> bytes:
    data = random.choice(small_cases())
    for _ in range(random.choice((1, 1, 2, 4))):
        data = random.choice(EDITS)(data, (), random)
    return data


def test_reads_what_java_wrote() -> None:
    cases = made_by_java()
    wrong = [made.name for made in cases if as_java_says(decode_records(made.data)) != made.truth]
    print(f"\n{len(cases)} pieces of record data of Kafka's builders, {len(wrong)} read otherwise")
    assert not wrong, wrong
    assert len(cases) > 450


def test_unchanged_batches_encode_to_their_very_bytes() -> None:
    for made in made_by_java():
        whole = len(made.data) - made.truth["truncated_bytes"]
        for unpack in (True, False):
            assert encode_records(decode_records(made.data, unpack=unpack).batches) == made.data[:whole], made.name


def test_uncompressed_records_written_anew_are_javas_bytes() -> None:
    compared = 0
    for made in made_by_java():
        records = decode_records(made.data)
        if records.exact:
            assert all(batch.payload is None for batch in records.batches), made.name
            assert encode_records(records.batches) == made.data, made.name
            compared += 1
        else:
            excuses = "compressing it again|log append time hides|bytes are present"
            assert all(re.search(excuses, reason) for reason in records.reasons), (made.name, records.reasons)
    assert compared > 100


def test_java_reads_our_compressed_batches_to_the_same_records() -> None:
    """Recompression is never byte-exact (protocol note 34): the records must be the same, the bytes are ours."""
    cases = [made for made in made_by_java() if any(b["compression"] != "none" for b in made.truth["batches"])]
    ours = [[replace(b, payload=None) for b in decode_records(made.data).batches] for made in cases]
    truths = read_by_java(encode_records(batches) for batches in ours)
    for made, truth in zip(cases, truths, strict=True):
        assert not isinstance(truth, str), (made.name, truth)
        assert [b["records"] for b in truth["batches"]] == [b["records"] for b in made.truth["batches"]], made.name
        assert all(b["crc_ok"] for b in truth["batches"]), made.name
    assert len(cases) > 200


def test_java_reads_batches_made_here() -> None:
    extremes = [
        Record(0, -(2**63), b"", None),
        Record(1, 2**63 - 1, None, b""),
        Record(2, 0, b"k", b"v", (("é", b""),)),
    ]
    made: list[bytes] = []
    for compression in ("none", "gzip", "snappy", "lz4", "zstd"):
        batch = new_batch(
            extremes, compression=compression, producer_id=5, producer_epoch=1, base_sequence=9, is_transactional=True
        )
        made.append(encode_records([batch, new_batch([], base_offset=77, compression=compression)]))
        made.append(encode_records([new_batch(extremes, compression=compression, timestamp_type="LogAppendTime")]))
        for magic in (0, 1):
            if compression not in ("none", "zstd"):
                old = [replace(record, headers=(), timestamp=5) for record in extremes]
                made.append(encode_records([new_batch(old, magic=magic, compression=compression)]))
    truths = read_by_java(made)
    assert truths == [as_java_says(decode_records(data)) for data in made]


@pytest.fixture(params=["in C", "in Python"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both fast readers: the one in C, and the one of builds without a compiler."""
    if request.param == "in Python":
        monkeypatch.setattr(fast_records, "_read", None)
    elif fast_records._read is None:
        pytest.skip("built without a compiler")


@pytest.mark.usefixtures("engine")
def test_careful_and_fast_reader_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [made for made in made_by_java() if made.name.startswith(("magic 2", "control"))]
    fast = [decode_records(made.data) for made in cases]

    def surprised(*_: Any) -> None:
        raise NotCanonical

    monkeypatch.setattr(record_batch, "fast_records", surprised)
    for made, records in zip(cases, fast, strict=True):
        assert decode_records(made.data) == records, made.name


@pytest.mark.usefixtures("engine")
def test_fast_reader_reads_whatever_kafka_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Never:
        def __init__(self, *_: Any) -> None:
            raise AssertionError("the careful reader was asked")

    monkeypatch.setattr(record_batch, "RecordWalk", Never)
    for made in made_by_java():
        # A delta of more than 62 bits is no timestamp that anyone writes.
        if "random" not in made.name:
            decode_records(made.data)


@pytest.mark.usefixtures("engine")
def test_damaged_records_are_read_alike_with_care_and_fast() -> None:
    """Payloads with any bytes changed: the fast reader reads as the careful one does, or leaves them alone."""
    random = Random(SEED + 2)
    wanted = [made.data for made in made_by_java() if made.name.startswith("magic 2")]
    read_fast = 0
    for _ in range(MUTATIONS):
        data = random.choice(wanted)
        batch = decode_records(data, unpack=False).batches[0]
        if batch.compression != "none":
            continue
        body = bytearray(data[61 : batch.end])
        for _ in range(random.randint(1, 3)):
            if body:
                body[random.randrange(len(body))] = random.choice((0, 1, 2, 0x7F, 0x80, 0xFF, random.randrange(256)))
        count = (batch.records_count or 0) + random.choice((0, 0, 0, 1, -1))
        start = BatchStart(batch.base_offset, batch.attributes, batch.base_timestamp, batch.max_timestamp, count)
        with suppress(*SURPRISES):
            fast = fast_records.fast_records(start, bytes(body), 0, len(body), Budget())
            careful, reasons = RecordWalk(start, bytes(body), 0, len(body), Budget(), "", "").records()
            assert (list(fast), []) == (careful, reasons)
            read_fast += 1
    assert read_fast > 20


def test_mutations_give_a_result_or_a_decode_error() -> None:
    """Whatever is decoded, unchanged it encodes to its bytes, save checksums and a cut end."""
    random = Random(SEED)
    read = 0
    for number in range(MUTATIONS):
        data = mutated(random)
        try:
            records = decode_records(data)
        except DecodeError:
            continue
        read += 1
        again = encode_records(records.batches)
        whole = data[: len(data) - records.truncated_bytes]
        if all(batch.crc_ok for batch in records.batches):
            assert again == whole, f"seed {SEED}, mutation {number}"
        assert len(again) == len(whole), f"seed {SEED}, mutation {number}"
        back = decode_records(again)
        assert [batch.records for batch in back.batches] == [batch.records for batch in records.batches]
        assert all(batch.crc_ok for batch in back.batches)
    print(f"\n{MUTATIONS} mutations, {read} read")
    assert MUTATIONS / 10 < read < MUTATIONS


def test_java_and_we_read_damaged_data_alike() -> None:
    random = Random(SEED + 1)
    damaged = [mutated(random) for _ in range(MUTATIONS)]
    # Java does not mind odd gzip headers and takes any inner magic for 1. It minds a control record's key and a
    # gzip stream that reaches back before its start, where we see zeros (its own checksum still holds).
    ours_alone = re.compile("gzip: invalid gzip header|a message set has 0 or 1.*of the decompressed data")
    javas_alone = re.compile("control record|invalid distance too far back")
    for number, (data, truth) in enumerate(zip(damaged, read_by_java(damaged), strict=True)):
        ours = read_here(data)
        if ours == truth or (isinstance(ours, str) and isinstance(truth, str)):
            continue
        excused = ours_alone.search(ours) if isinstance(ours, str) else javas_alone.search(str(truth))
        assert excused, (f"seed {SEED + 1}, mutation {number}", ours, truth)
