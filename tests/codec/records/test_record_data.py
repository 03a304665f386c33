"""Record batches: every field read, every count and length checked, every batch encoded back; odd ones are data."""

import re
from dataclasses import FrozenInstanceError, replace
from typing import Any, cast

import pytest

from kafkascope import limits
from kafkascope.codec.records.record_data import (
    Record,
    RecordBatch,
    Records,
    control_records,
    decode_records,
    encode_records,
    new_batch,
)
from kafkascope.errors import DecodeError, EncodeError, UsageError
from tests.judge.records import made_by_java
from tests.support.hexes import hexes
from tests.support.record_data import batch_around

BATCH = hexes("""
    0000000000000064    # base offset 100
    00000049            # 73 bytes follow
    00000007            # partition leader epoch 7
    02                  # magic 2
    cd5302d9            # crc-32c of what follows
    0000                # attributes: none, create time
    00000001            # last offset delta 1
    0000018bcfe56800    # base timestamp 1700000000000
    0000018bcfe56801    # max timestamp 1700000000001
    ffffffffffffffff    # no producer id
    ffff                # no producer epoch
    ffffffff            # no base sequence
    00000002            # 2 records
    14                  # record of 10 bytes
    00 00 00            # attributes, timestamp delta 0, offset delta 0
    01                  # null key
    02 76               # value "v"
    02 02 68 01         # one header: "h", null
    18                  # record of 12 bytes
    00 02 02            # attributes, timestamp delta 1, offset delta 1
    00                  # empty key
    0c 76616c756521     # value "value!"
    00                  # no headers
""")
COUNT_AT, RECORDS_AT = 57, 61
RECORDS = (
    Record(100, 1_700_000_000_000, None, b"v", (("h", None),)),
    Record(101, 1_700_000_000_001, b"", b"value!"),
)


def only(records: Records) -> RecordBatch:
    (batch,) = records.batches
    return batch


def with_records(payload: str, count: int = 1) -> bytes:
    """A batch of the given records in commented hex, its length and checksum right."""
    return batch_around(hexes(payload), "none", count=count)


def test_reads_every_field_of_a_batch() -> None:
    records = decode_records(BATCH)
    assert records == Records((only(records),), 0, (), True)
    assert only(records) == RecordBatch(
        base_offset=100,
        batch_length=73,
        partition_leader_epoch=7,
        magic=2,
        crc=0xCD5302D9,
        crc_ok=True,
        attributes=0,
        last_offset_delta=1,
        base_timestamp=1_700_000_000_000,
        max_timestamp=1_700_000_000_001,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        records_count=2,
        start=0,
        end=len(BATCH),
        payload=None,
        records=RECORDS,
    )
    assert encode_records(records.batches) == BATCH


def test_null_key_is_not_empty_key() -> None:
    """protocol note 35, in values as well, and both ways."""
    first, second = only(decode_records(BATCH)).records or ()
    assert first.key is None and second.key == b""
    swapped = [Record(0, 0, b"", b""), Record(1, 0, None, None), Record(2, 0, b"", None)]
    for compression in ("none", "gzip"):
        data = encode_records([new_batch(swapped, compression=compression)])
        assert only(decode_records(data)).records == tuple(swapped)


def test_records_are_frozen() -> None:
    record = (only(decode_records(BATCH)).records or ())[0]
    assert type(record) is Record and hash(record) == hash(RECORDS[0])
    with pytest.raises(FrozenInstanceError):
        record.key = b""  # type: ignore[misc]


@pytest.mark.parametrize("cut", [1, 11, 12, 16, 17, 60, 61, len(BATCH) - 1])
def test_partial_last_batch_is_counted_and_not_read(cut: int) -> None:
    """protocol note 33: a fetch ends in the middle of a batch whose length shows the full size."""
    records = decode_records(BATCH + BATCH[:cut])
    assert only(records).records == RECORDS
    assert records.truncated_bytes == cut
    whole = f"it has {len(BATCH)}" if cut > 16 else "its header needs 17"
    assert records.reasons == (f"batch[1]: {cut} bytes are present, {whole} (offset {len(BATCH)})",)
    assert not records.exact


def test_partial_batch_alone_is_no_batch() -> None:
    records = decode_records(BATCH[:30])
    assert records.batches == () and records.truncated_bytes == 30


def test_no_bytes_are_no_batches() -> None:
    assert decode_records(b"") == Records((), 0, (), True)
    assert encode_records([]) == b""


@pytest.mark.heavy
def test_control_batches_say_what_they_command() -> None:
    """protocol note 35."""
    made = {made.name: only(decode_records(made.data)) for made in made_by_java() if made.name.startswith("control")}
    controls = {name: [(c.name, c.type, c.value) for c in control_records(batch)] for name, batch in made.items()}
    assert controls["control commit"] == [("COMMIT", 1, {"coordinatorEpoch": 17})]
    assert controls["control abort"] == [("ABORT", 0, {"coordinatorEpoch": 18})]
    ((name, type_, change),) = controls["control leader change"]
    assert (name, type_) == ("LEADER_CHANGE", 2)
    assert change is not None and change["leaderId"] == 2 and len(change["voters"]) == 2
    assert [rows[0][:2] for key, rows in controls.items() if key not in ("control commit", "control abort")] == [
        ("LEADER_CHANGE", 2),
        ("SNAPSHOT_HEADER", 3),
        ("SNAPSHOT_FOOTER", 4),
        ("KRAFT_VERSION", 5),
        ("KRAFT_VOTERS", 6),
    ]
    assert all(rows[0][2] is not None for rows in controls.values())
    assert made["control commit"].is_transactional and not made["control leader change"].is_transactional


@pytest.mark.parametrize(
    ("key", "type_"), [(None, None), (b"\x00\x00\x00", None), (b"\x00\x00\x00\x63", 99), (b"\x00\x00\x00\x01", 1)]
)
def test_unknown_control_record_is_data(key: bytes | None, type_: int | None) -> None:
    data = encode_records([new_batch([Record(0, 0, key, b"\x7f\xff")], is_control=True)])
    (control,) = control_records(only(decode_records(data)))
    assert control.type == type_ and control.value is None
    assert control_records(only(decode_records(BATCH))) == ()


@pytest.mark.heavy
def test_delete_horizon_stands_in_for_the_base_timestamp() -> None:
    """protocol note 35, KIP-534: the records' own times are told from it by negative deltas."""
    made = next(made for made in made_by_java() if made.name == "magic 2 none delete horizon")
    batch = only(decode_records(made.data))
    assert batch.has_delete_horizon and batch.base_timestamp == 1_700_001_000_000
    assert [record.timestamp for record in batch.records or ()] == [1_700_000_000_000] * 2


@pytest.mark.heavy
def test_compaction_leaves_batches_without_records() -> None:
    """protocol note 35: the header stays for the producer's sake, with the offsets that it had."""
    made = next(made for made in made_by_java() if made.name == "magic 2 gzip emptied by compaction")
    records = decode_records(made.data)
    batch = only(records)
    assert batch.records == () and batch.records_count == 0 and batch.last_offset_delta == 1
    assert batch.producer_id == 9_000_000_001
    assert records.exact and encode_records([batch]) == made.data


def test_bytes_of_a_batch_without_records_are_kept() -> None:
    data = with_records("00 01 02", count=0)
    records = decode_records(data)
    assert records.reasons == ("batch[0]: 3 bytes and no record (offset 61)",)
    assert encode_records(records.batches) == data


def test_wrong_checksum_is_data() -> None:
    records = decode_records(BATCH[:-2] + b"?\x00")
    assert not only(records).crc_ok and not records.exact
    assert re.fullmatch(
        r"batch\[0\]: crc is 3444769497, computed from the bytes it is \d+ \(offset 17\)", records.reasons[0]
    )
    assert (only(records).records or ())[1].value == b"value?"
    assert decode_records(encode_records(records.batches)).exact


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (8, "ffffffff", r"^batch\[0\]: length -1, expected at least 14 \(offset 8\)$"),
        (8, "80000000", r"^batch\[0\]: length -2147483648, "),
        (8, "0000000d", r"^batch\[0\]: length 13, expected at least 14"),
        (8, "00000030", r"^batch\[0\]: length 48, expected at least 49 \(offset 8\)$"),
        (16, "03", r"^batch\[0\]: magic 3; known are 0-2 \(offset 16\)$"),
        (16, "ff", r"^batch\[0\]: magic 255; "),
        (21, "0005", r"^batch\[0\]: compression 5; known are 0-4 \(offset 21\)$"),
        (21, "0007", r"^batch\[0\]: compression 7; "),
    ],
)
def test_rejects_what_no_batch_says(at: int, value: str, reason: str) -> None:
    field = bytes.fromhex(value)
    with pytest.raises(DecodeError, match=reason):
        decode_records(BATCH[:at] + field + BATCH[at + len(field) :])


@pytest.mark.parametrize(
    ("count", "reason"),
    [
        (-1, r"^batch\[0\]: records count -1 \(offset 57\)$"),
        (-(2**31), r"^batch\[0\]: records count -2147483648 "),
        (2**31 - 1, r"^batch\[0\]: 2147483647 records need 15032385529 bytes, 24 left \(offset 61\)$"),
        (4, r"^batch\[0\]: 4 records need 28 bytes, 24 left"),
        (3, r"^batch\[0\]\.records\[2\]: length is cut off or too long \(offset 85\)$"),
        (1, r"^batch\[0\]: 13 bytes after the last record \(offset 72\)$"),
    ],
)
def test_rejects_records_count_that_the_batch_cannot_hold(count: int, reason: str) -> None:
    """protocol note 22: before anything is allocated. Java runs out of memory here."""
    with pytest.raises(DecodeError, match=reason):
        decode_records(BATCH[:COUNT_AT] + count.to_bytes(4, "big", signed=True) + BATCH[RECORDS_AT:])


def test_rejects_records_count_that_a_compressed_batch_cannot_hold() -> None:
    batch = new_batch([Record(0, 0, None, None)], compression="zstd")
    (packed,) = decode_records(encode_records([batch]), unpack=False).batches
    with pytest.raises(DecodeError, match=r"^batch\[0\]: 1000000 records need 7000000 bytes, 7 left"):
        decode_records(encode_records([replace(packed, records_count=1_000_000)]))
    with pytest.raises(DecodeError, match=r"^batch\[0\]: more than 2000000 batches, records and headers"):
        decode_records(encode_records([replace(packed, records_count=2**31 - 1)]))


def test_batches_share_one_limit_of_records_and_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_RECORD_ITEMS", 8)
    assert len(decode_records(BATCH * 2).batches) == 2
    with pytest.raises(DecodeError, match=r"^batch\[2\]: more than 8 batches, records and headers"):
        decode_records(BATCH * 3)
    monkeypatch.setattr(limits, "MAX_RECORD_ITEMS", 7)
    with pytest.raises(DecodeError, match=r"^batch\[1\]: more than 7 batches"):
        decode_records(BATCH * 2)


def test_headers_are_counted_once_when_the_careful_reader_starts_over(monkeypatch: pytest.MonkeyPatch) -> None:
    data = with_records(
        """
        14 00 00 00 01 02 76 02 02 68 01    # a record with one header
        0c 00 00 00 03 01 00                # a record with a key length of -2: a surprise
    """,
        count=2,
    )
    monkeypatch.setattr(limits, "MAX_RECORD_ITEMS", 4)
    assert only(decode_records(data)).records_count == 2


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ("0c 00 00 00 01 01 01", r"records\[0\]: -1 headers, 0 bytes left"),
        ("0c 00 00 00 01 01 7e", r"records\[0\]: 63 headers, 0 bytes left"),
        ("14 00 00 00 01 01 feffffff0f", r"records\[0\]: 2147483647 headers, 0 bytes left"),
        ("10 00 00 00 01 01 02 01 01", r"records\[0\]\.headers\[0\]: a header key is null"),
        ("0e 00 00 00 08 01 01 00", r"records\[0\]: key of 4 bytes, 3 left"),
        ("0e 00 00 00 01 08 01 00", r"records\[0\]: value of 4 bytes, 2 left"),
        ("0e 00 00 00 01 01 00 00", r"records\[0\]: length 7 is 1 more than it holds"),
        ("0a 00 00 00 01 01 00", r"records\[0\]: length 5, 6 left"),
        ("01 00 00 00 01 01 00", r"records\[0\]: length -1, 6 left"),
        ("7e 00 00 00 01 01 00", r"records\[0\]: length 63, 6 left"),
        ("0c 00 80 80 80 80 80", r"records\[0\]: timestamp delta is cut off or too long"),
        ("14 00 00 8080808080 00 01 01 00", r"records\[0\]: offset delta is cut off or too long"),
    ],
)
def test_rejects_lengths_that_the_record_cannot_hold(payload: str, reason: str) -> None:
    with pytest.raises(DecodeError, match=rf"^batch\[0\]\.{reason}"):
        decode_records(with_records(payload))


@pytest.mark.parametrize(
    ("payload", "record", "reason"),
    [
        ("0e 00 8000 00 01 01 00", Record(0, 0, None, None), "timestamp delta takes 2 bytes, fewer would do"),
        ("8c00 00 00 00 01 01 00", Record(0, 0, None, None), "length takes 2 bytes, fewer would do"),
        ("0c 00 00 00 03 01 00", Record(0, 0, None, None), "key length -2, written as -1"),
        ("0c 00 00 00 01 05 00", Record(0, 0, None, None), "value length -3, written as -1"),
        ("14 00 00 8080808010 01 01 00", Record(0, 0, None, None), "offset delta takes 5 bytes, fewer would do"),
        ("12 00 00 00 01 01 02 02 ff 01", Record(0, 0, None, None, (("�", None),)), "key is invalid UTF-8"),
    ],
)
def test_odd_records_that_java_reads_are_inexact_and_encode_back(payload: str, record: Record, reason: str) -> None:
    data = with_records(payload)
    records = decode_records(data)
    assert only(records).records == (record,)
    assert not records.exact and reason in records.reasons[0]
    assert encode_records(records.batches) == data


def test_attributes_of_a_record_are_signed_and_kept() -> None:
    data = with_records("0c ff 00 00 01 01 00")
    records = decode_records(data)
    assert records.exact and (only(records).records or ())[0].attributes == -1
    assert encode_records(records.batches) == data


def test_timestamps_turn_over_as_java_longs_do() -> None:
    extremes = [Record(0, 2**63 - 1, None, None), Record(1, -(2**63), None, None)]
    records = decode_records(encode_records([new_batch(extremes)]))
    assert records.exact and only(records).records == tuple(extremes)


def test_log_append_time_shows_on_every_record_and_keeps_the_bytes() -> None:
    (batch,) = decode_records(BATCH).batches
    stamped = replace(batch, attributes=8, max_timestamp=5, records=None, payload=BATCH[RECORDS_AT:])
    data = encode_records([stamped])
    records = decode_records(data)
    assert [record.timestamp for record in only(records).records or ()] == [5, 5]
    assert records.reasons == ("batch[0]: log append time hides the create times of its records",)
    assert encode_records(records.batches) == data


def test_compressed_batch_says_that_packing_anew_differs() -> None:
    """protocol note 34: recompression is never byte-exact."""
    records = decode_records(encode_records([new_batch(RECORDS, compression="snappy")]))
    assert records.reasons == ("batch[0]: snappy, and compressing it again makes different bytes",)
    assert not records.exact and only(records).records == RECORDS


def test_not_unpacked_keeps_the_payload_and_encodes_back() -> None:
    data = encode_records([new_batch(RECORDS, compression="gzip")]) + BATCH
    records = decode_records(data, unpack=False)
    assert [batch.records for batch in records.batches] == [None, None]
    assert [batch.records_count for batch in records.batches] == [2, 2]
    assert records.exact and encode_records(records.batches) == data
    # nor is anything unpacked on the way
    assert decode_records(batch_around(b"no gzip at all", "gzip"), unpack=False).exact


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_changed_batch_is_written_from_its_records(compression: str) -> None:
    batch = only(decode_records(encode_records([new_batch(RECORDS, compression=compression)])))
    changed = (*RECORDS, Record(102, 1_700_000_000_005, b"new", b"record"))
    again = only(decode_records(encode_records([replace(batch, records=changed, last_offset_delta=2)])))
    assert again.records == changed and again.records_count == 3 and again.crc_ok
    # a payload is stale as well when the header under it moves
    moved = only(decode_records(encode_records([replace(batch, base_offset=90, base_timestamp=0)])))
    assert moved.records == RECORDS and moved.base_offset == 90


def test_reasons_are_listed_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_REASONS", 3)
    for data in (with_records("0c 00 00 00 03 03 00" * 9, count=9), (BATCH[:-1] + b"\x00") * 2 + BATCH[:17] + b"\x00"):
        assert len(decode_records(data).reasons) <= 4
    records = decode_records(with_records("0c 00 00 00 03 03 00" * 9, count=9))
    assert records.reasons[3] == "more than 3 reasons, the rest isn't listed"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"magic": 3}, r"^batch\[0\]\.magic: 3; known are 0-2"),
        ({"producer_epoch": 40_000}, r"^batch\[0\]\.producer_epoch: 40000 doesn't fit int16"),
        ({"records": None}, r"^batch\[0\]: neither records nor payload"),
        ({"attributes": 6}, r"^batch\[0\]\.attributes: compression 6; known are 0-4"),
        ({"base_offset": -(2**33)}, r"^batch\[0\]\.records\[0\]\.offset: 100 isn't within int32 of"),
        ({"records": (Record(100, 2**63, None, None),)}, r"\.timestamp: 9223372036854775808 doesn't fit int64"),
        ({"records": (Record(100, 10**5000, None, None),)}, r"\.timestamp: a number of more than 64 bits doesn't fit"),
        ({"producer_id": 10**5000}, r"\.producer_id: a number of more than 64 bits doesn't fit int64"),
        ({"records": (Record(100, 0, None, None, (), 128),)}, r"\.attributes: 128 doesn't fit int8"),
        (
            {"records": (Record(100, 0, cast(Any, "k"), None),)},
            r"^batch\[0\]\.records\[0\]\.key: expected bytes or null, got a str",
        ),
        ({"records": (Record(100, 0, None, None, (("\ud800", b""),)),)}, r"headers: a key can't be encoded as UTF-8"),
        (
            {"records": (Record(cast(Any, 100.5), 0, None, None),)},
            r"records\[0\]\.offset: expected int64, got a float",
        ),
        # time.time() * 1000 is a float.
        ({"records": (Record(100, cast(Any, 1e12), None, None),)}, r"\.timestamp: expected int64, got a float"),
        ({"records": (Record(100, 0, None, None, (), cast(Any, None)),)}, r"\.attributes: expected int8, got null"),
        (
            {"records": (Record(100, 0, None, None, cast(Any, {"h": b""})),)},
            r"headers: expected pairs of .*, got a dict",
        ),
        (
            {"records": (Record(100, 0, None, None, cast(Any, ("h",))),)},
            r"\.headers: expected pairs of a string and bytes or null",
        ),
        (
            {"records": (Record(100, 0, None, None, cast(Any, (("h", 1),))),)},
            r"\.headers: expected pairs of a string and bytes",
        ),
        (
            {"records": (cast(Any, (100, 0, None, None)),)},
            r"^batch\[0\]\.records\[0\]: expected a Record, got a tuple",
        ),
    ],
)
def test_refuses_to_write_what_a_batch_cannot_hold(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(EncodeError, match=reason):
        encode_records([replace(only(decode_records(BATCH)), **change)])


def test_new_batch_needs_records_or_an_offset() -> None:
    with pytest.raises(EncodeError, match="unknown compression 'brotli'"):
        new_batch(RECORDS, compression="brotli")
    with pytest.raises(EncodeError, match="needs magic 2 and a base offset"):
        new_batch([])


def test_new_batch_takes_what_kafkas_builder_takes() -> None:
    with pytest.raises(EncodeError, match="unknown timestamp type 'log_append'; use CreateTime or LogAppend"):
        new_batch(RECORDS, timestamp_type="log_append")
    with pytest.raises(EncodeError, match="transactional and control batches need magic 2"):
        new_batch(RECORDS[:1], magic=1, is_transactional=True)
    with pytest.raises(EncodeError, match="transactional and control batches need magic 2"):
        new_batch(RECORDS[:1], magic=0, is_control=True)
    with pytest.raises(EncodeError, match=r"^records\[1\]\.offset: expected int64, got a str"):
        new_batch([Record(0, 0, None, None), Record(cast(Any, "1"), 0, None, None)])


@pytest.mark.parametrize("data", [5, "00", None, [1, 2]])
def test_record_data_is_bytes(data: Any) -> None:
    with pytest.raises(UsageError, match=f"record data must be bytes, not {type(data).__name__}"):
        decode_records(data)


def test_batches_are_batches() -> None:
    with pytest.raises(EncodeError, match=r"^batch\[1\]: expected a RecordBatch, got an int"):
        encode_records([new_batch(RECORDS), cast(Any, 1)])
