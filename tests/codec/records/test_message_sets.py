"""Message sets, magic 0 and 1: fixed-width fields, one compressed level, the offsets of KIP-31."""

import zlib
from dataclasses import replace
from typing import Any, cast

import pytest

from kafkascope import limits
from kafkascope.codec.message import decode, encode
from kafkascope.codec.records.compression import pack
from kafkascope.codec.records.record_data import Record, RecordBatch, decode_records, encode_records, new_batch
from kafkascope.errors import DecodeError, EncodeError
from tests.support.hexes import hexes
from tests.support.record_data import batch_around

MAGIC_0 = hexes("""
    0000000000000007    # offset 7
    00000010            # 16 bytes follow
    5c214a30            # crc-32 of what follows
    00                  # magic 0
    00                  # attributes: not compressed
    ffffffff            # null key
    00000002 6f6b       # value "ok"
""")
MAGIC_1 = hexes("""
    0000000000000008    # offset 8
    00000018            # 24 bytes follow
    6f3f9b05            # crc-32 of what follows
    01                  # magic 1
    08                  # attributes: log append time
    0000018bcfe56800    # timestamp 1700000000000
    00000000            # empty key
    00000002 6f6b       # value "ok"
""")
# Behind size and crc: where the key's length stands in magic 0 and 1.
KEY_AT = {0: 18, 1: 26}


def only(data: bytes) -> RecordBatch:
    (batch,) = decode_records(data).batches
    return batch


def inner(*messages: tuple[int, int, bytes], magic: int = 1) -> bytes:
    """(offset, timestamp, value) of each, as a message set."""
    return b"".join(encode_records([new_batch([Record(o, t, None, v)], magic=magic)]) for o, t, v in messages)


def wrapped(data: bytes, offset: int = 0, magic: int = 1, compression: str = "gzip", attributes: int = 0) -> bytes:
    batch = only_packed(batch_around(pack(compression, data, magic), compression, magic))
    return encode_records([replace(batch, base_offset=offset, attributes=batch.attributes | attributes)])


def only_packed(data: bytes) -> RecordBatch:
    (batch,) = decode_records(data, unpack=False).batches
    return batch


def with_right_crc(message: bytes) -> bytes:
    return message[:12] + zlib.crc32(message[16:]).to_bytes(4, "big") + message[16:]


def test_reads_magic_0_without_a_timestamp() -> None:
    batch = only(MAGIC_0)
    assert batch.records == (Record(7, -1, None, b"ok"),)
    assert batch.crc_ok and batch.timestamp_type == "NoTimestampType" and batch.records_count == 1
    assert (batch.base_offset, batch.last_offset, batch.start, batch.end) == (7, 7, 0, 28)


def test_reads_magic_1_with_its_timestamp() -> None:
    batch = only(MAGIC_1)
    assert batch.records == (Record(8, 1_700_000_000_000, b"", b"ok", (), 8),)
    assert batch.crc_ok and batch.timestamp_type == "LogAppendTime"


def test_each_message_is_a_batch_and_encodes_back() -> None:
    records = decode_records(MAGIC_0 + MAGIC_1 + MAGIC_0)
    assert [batch.magic for batch in records.batches] == [0, 1, 0]
    assert [(batch.start, batch.end) for batch in records.batches] == [(0, 28), (28, 64), (64, 92)]
    assert records.exact
    assert encode_records(records.batches) == MAGIC_0 + MAGIC_1 + MAGIC_0


def test_message_set_stays_fixed_width_inside_flexible_fetch() -> None:
    """protocol note 36: the records field is compact in v12, what is inside it is not."""
    partition = {"partitionIndex": 0, "errorCode": 0, "highWatermark": 9, "records": MAGIC_0 + MAGIC_1}
    body = encode("FetchResponse", 12, {"responses": [{"topic": "orders", "partitions": [partition]}]})
    assert bytes([len(MAGIC_0 + MAGIC_1) + 1]) + MAGIC_0 + MAGIC_1 in body
    data = decode("FetchResponse", 12, body).value["responses"][0]["partitions"][0]["records"]
    assert [batch.records_count for batch in decode_records(data).batches] == [1, 1]
    assert encode_records(decode_records(data).batches) == MAGIC_0 + MAGIC_1


def test_compressed_message_of_magic_1_counts_from_its_last_offset() -> None:
    """KIP-31: relative offsets inside, the last one's absolute offset outside."""
    data = wrapped(inner((0, 5, b"a"), (1, 6, b"b"), (4, 7, b"c")), offset=104)
    batch = only(data)
    assert batch.records is not None
    assert [record.offset for record in batch.records] == [100, 101, 104]
    assert (batch.base_offset, batch.last_offset, batch.records_count) == (100, 104, 3)


def test_compressed_message_of_magic_0_has_absolute_offsets() -> None:
    batch = only(wrapped(inner((100, 0, b"a"), (104, 0, b"b"), magic=0), offset=104, magic=0))
    assert batch.records is not None
    assert [record.offset for record in batch.records] == [100, 104]


def test_producers_wrapper_of_offset_0_keeps_the_offsets_inside() -> None:
    data = wrapped(inner((0, 5, b"a"), (1, 6, b"b")), offset=0)
    batch = only(data)
    assert batch.records is not None
    assert [record.offset for record in batch.records] == [0, 1]
    assert encode_records([batch]) == data


def test_log_append_time_of_the_wrapper_hides_the_times_inside() -> None:
    batch = only_packed(wrapped(inner((0, 5, b"a"), (1, 6, b"b")), attributes=8))
    data = encode_records([replace(batch, max_timestamp=99)])
    records = only(data).records
    assert records is not None
    assert [record.timestamp for record in records] == [99, 99]


def test_rejects_wrapper_offset_below_those_inside() -> None:
    with pytest.raises(DecodeError, match=r"^batch\[0\]: offset 1, below the 4 inside it"):
        decode_records(wrapped(inner((0, 5, b"a"), (4, 6, b"b")), offset=1))


@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_is_refused_in_magic_0_and_1(magic: int) -> None:
    """protocol note 34; packed it is data all the same."""
    data = batch_around(pack("zstd", inner((0, 5, b"a")), magic), "zstd", magic)
    assert only_packed(data).compression == "zstd"
    with pytest.raises(DecodeError, match=f"zstd in magic {magic}, which only magic 2 has"):
        decode_records(data)
    with pytest.raises(EncodeError, match=f"zstd in magic {magic}"):
        encode_records([new_batch([Record(0, 0, None, None)], magic=magic, compression="zstd")])


def test_rejects_compressed_message_inside_a_compressed_message() -> None:
    once = wrapped(inner((0, 5, b"a")))
    with pytest.raises(
        DecodeError, match=r"^batch\[0\]\.records\[0\]: compressed inside a compressed message, 1 level"
    ):
        decode_records(wrapped(once))


def test_rejects_compressed_message_of_nothing() -> None:
    with pytest.raises(DecodeError, match="gzip and no message inside"):
        decode_records(wrapped(b""))
    null = new_batch([Record(0, 0, None, None)], magic=1)
    with pytest.raises(DecodeError, match="gzip and a null value"):
        decode_records(encode_records([replace(null, attributes=1, payload=b"\xff" * 8, records=None)]))


def test_cut_message_inside_a_compressed_one_is_a_reason() -> None:
    """Java stops there without a word."""
    data = wrapped(inner((0, 5, b"a"), (1, 6, b"b"))[:-3], offset=0)
    records = decode_records(data)
    assert records.batches[0].records_count == 1
    assert "bytes of a cut message" in records.reasons[1]
    assert encode_records(records.batches) == data


def test_wrong_checksum_inside_is_a_reason_and_the_bytes_are_kept() -> None:
    set_ = bytearray(inner((0, 5, b"a")))
    set_[-1] ^= 1
    data = wrapped(bytes(set_))
    records = decode_records(data)
    assert records.batches[0].crc_ok
    assert records.reasons[1].startswith("batch[0].records[0]: crc is ")
    assert encode_records(records.batches) == data


def test_inner_message_of_another_magic_is_read_with_a_reason() -> None:
    records = decode_records(wrapped(inner((0, 5, b"a"), magic=0)))
    assert "batch[0].records[0]: magic 0 inside magic 1" in records.reasons
    assert records.batches[0].records == (Record(0, -1, None, b"a"),)


@pytest.mark.parametrize("message", [MAGIC_0, MAGIC_1])
def test_wrong_checksum_is_data(message: bytes) -> None:
    records = decode_records(message[:-1] + b"!")
    assert not records.batches[0].crc_ok and not records.exact
    assert records.reasons[0].startswith("batch[0]: crc is ")
    assert "(offset 12)" in records.reasons[0]
    assert encode_records(records.batches) == with_right_crc(message[:-1] + b"!")


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize(
    ("length", "reason"),
    [("7fffffff", r"^batch\[0\]\.key: 2147483647 bytes, \d+ left"), ("00000009", r"^batch\[0\]\.(key|value): ")],
)
def test_rejects_length_beyond_the_message(magic: int, length: str, reason: str) -> None:
    message, at = (MAGIC_0, MAGIC_1)[magic], KEY_AT[magic]
    with pytest.raises(DecodeError, match=reason):
        decode_records(message[:at] + bytes.fromhex(length) + message[at + 4 :])


def test_null_length_below_minus_one_is_null_with_a_reason() -> None:
    message = with_right_crc(MAGIC_0[:18] + b"\xff\xff\xff\xfe" + MAGIC_0[22:])
    records = decode_records(message)
    assert records.batches[0].records == (Record(7, -1, None, b"ok"),)
    assert records.reasons == ("batch[0].key: length -2, written as -1 (offset 18)",)
    assert encode_records(records.batches) == message
    assert encode_records([replace(records.batches[0], payload=None)]) == MAGIC_0


@pytest.mark.parametrize(("message", "least"), [(MAGIC_0, 14), (MAGIC_1, 22)])
def test_rejects_size_below_the_fixed_fields(message: bytes, least: int) -> None:
    short = message[:8] + (least - 1).to_bytes(4, "big") + message[12 : 12 + least - 1]
    with pytest.raises(DecodeError, match=rf"expected at least {least} \(offset 8\)"):
        decode_records(short)


def test_messages_and_those_inside_them_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = wrapped(inner((0, 5, b"a"), (1, 6, b"b")))
    monkeypatch.setattr(limits, "MAX_RECORD_ITEMS", 5)
    assert len(decode_records(MAGIC_0 + packed).batches) == 2
    monkeypatch.setattr(limits, "MAX_RECORD_ITEMS", 4)
    with pytest.raises(DecodeError, match=r"^batch\[1\]: more than 4 batches, records and headers"):
        decode_records(MAGIC_0 + packed)
    with pytest.raises(DecodeError, match=r"^batch\[2\]: more than 4 "):
        decode_records(MAGIC_0 * 3)


def test_changed_compressed_message_is_packed_anew() -> None:
    batch = only(wrapped(inner((0, 5, b"a"), (1, 6, b"b")), offset=11))
    assert batch.records is not None
    changed = (*batch.records, Record(15, 7, b"k", b"new"))
    again = only(encode_records([replace(batch, records=changed)]))
    assert again.records == changed
    assert again.last_offset == 15


def test_refuses_to_write_what_a_message_cannot_hold() -> None:
    plain = [Record(0, 0, None, None), Record(1, 0, None, None)]
    with pytest.raises(EncodeError, match="expected one record in a message of magic 1, got 2"):
        encode_records([new_batch(plain, magic=1)])
    with pytest.raises(EncodeError, match=r"headers: got 1, but only magic 2 has them"):
        encode_records([new_batch([Record(0, 0, None, None, (("h", None),))], magic=1)])
    with pytest.raises(EncodeError, match=r"^records\[0\]\.offset: 9223372036854775808 doesn't fit int64"):
        encode_records([new_batch([Record(1 << 63, 0, None, None)], magic=0)])
    message = new_batch(plain[:1], magic=1)
    with pytest.raises(EncodeError, match=r"^batch\[0\]\.records\[0\]\.timestamp: expected int64, got a str"):
        encode_records([replace(message, records=(Record(0, cast(Any, "0"), None, None),))])
