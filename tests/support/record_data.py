"""Batches around a given payload, bombs of zeros in every compression, and record data in the words of the judge."""

import zlib
from dataclasses import replace
from typing import Any

import cramjam

from kafkascope.codec.records.compression import XERIAL_MAGIC
from kafkascope.codec.records.lz4_frame import write_frame
from kafkascope.codec.records.record_data import Record, Records, control_records, encode_records, new_batch

MEBIBYTE = 1 << 20
# Compression in the attributes, by the name of the bomb.
PACKINGS = {"gzip": "gzip", "snappy raw": "snappy", "snappy xerial": "snappy", "lz4": "lz4", "zstd": "zstd"}


def batch_around(payload: bytes, compression: str, magic: int = 2, count: int = 1) -> bytes:
    """A batch with a right checksum whose packed part is `payload`, whatever that is."""
    made = new_batch([Record(0, 0, None, None)], magic=magic, compression=compression)
    if magic < 2:
        payload = b"\xff\xff\xff\xff" + len(payload).to_bytes(4, "big") + payload
    return encode_records([replace(made, records=None, records_count=count, payload=payload)])


def zeros(packing: str, mebibytes: int) -> bytes:
    """So many zeros, packed without ever lying unpacked in memory."""
    if packing == "gzip":
        gzip = zlib.compressobj(9, wbits=31)
        return b"".join(gzip.compress(bytes(MEBIBYTE)) for _ in range(mebibytes)) + gzip.flush()
    if packing == "zstd":
        zstd = cramjam.zstd.Compressor(level=1)
        for _ in range(mebibytes):
            zstd.compress(bytes(MEBIBYTE))
        return bytes(zstd.finish())
    if packing == "lz4":
        frame = write_frame(bytes(65_536), broken_checksum=False)
        return frame[:7] + frame[7:-4] * (16 * mebibytes) + frame[-4:]
    if packing == "snappy xerial":
        block = bytes(cramjam.snappy.compress_raw(bytes(MEBIBYTE)))
        return XERIAL_MAGIC + bytes([0, 0, 0, 1] * 2) + (len(block).to_bytes(4, "big") + block) * mebibytes
    size = mebibytes * MEBIBYTE
    length = bytes([size >> shift & 0x7F | (0x80 if shift < 28 else 0) for shift in range(0, 35, 7)])
    # A literal zero, then copies of 64 bytes (and one of 63) from one byte back.
    return length + b"\x00\x00" + b"\xfe\x01\x00" * (size // 64 - 1) + b"\xfa\x01\x00"


def as_java_says(records: Records) -> dict[str, Any]:
    """The same JSON that RecordsJudge.java writes."""
    return {
        "batches": [
            {
                "crc": batch.crc,
                "crc_ok": batch.crc_ok,
                "magic": batch.magic,
                "base_offset": batch.base_offset,
                "last_offset": batch.last_offset,
                "max_timestamp": batch.max_timestamp,
                "timestamp_type": batch.timestamp_type,
                "compression": batch.compression,
                "is_transactional": batch.is_transactional,
                "is_control": batch.is_control,
                "has_delete_horizon": batch.has_delete_horizon,
                "partition_leader_epoch": batch.partition_leader_epoch,
                "producer_id": batch.producer_id,
                "producer_epoch": batch.producer_epoch,
                "base_sequence": batch.base_sequence,
                "size": batch.end - batch.start,
                "records": [_row(record) for record in batch.records or ()],
                "control": [control.name for control in control_records(batch)],
            }
            for batch in records.batches
        ],
        "truncated_bytes": records.truncated_bytes,
    }


def _row(record: Record) -> list[Any]:
    headers = [[key, _hex(value)] for key, value in record.headers]
    return [record.offset, record.timestamp, _hex(record.key), _hex(record.value), headers]


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()
