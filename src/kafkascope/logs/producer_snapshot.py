"""Reads a partition's `.snapshot` file: the producers that it knows, and their open transactions."""

from typing import Any

from crc32c import crc32c

from kafkascope.codec.message import decode
from kafkascope.errors import DecodeError, InputError
from kafkascope.logs.small_files import read_whole
from kafkascope.logs.window import Source

_VERSION = 1
_CRC_AT = 2
_ENTRIES_AT = 6


def read_producer_snapshot(path: str, source: Source | None = None) -> list[dict[str, Any]]:
    """One row per producer. `InputError` for one that a broker would throw away."""
    data = read_whole(path, source)
    version = int.from_bytes(data[:_CRC_AT], "big", signed=True)
    if len(data) < _ENTRIES_AT or version != _VERSION:
        what = f"{len(data)} bytes" if len(data) < _ENTRIES_AT else f"version {version}"
        raise InputError(f"{path}: {what}; a producer snapshot has version {_VERSION} and a checksum")
    stored = int.from_bytes(data[_CRC_AT:_ENTRIES_AT], "big")
    right = crc32c(data[_ENTRIES_AT:])
    if stored != right:
        raise InputError(f"{path}: the stored checksum is {stored}, the right one {right}")
    try:
        value = decode("ProducerSnapshot", version, data[_CRC_AT:]).value
    except DecodeError as error:
        raise InputError(f"{path}: {error}") from None
    return [
        {
            "producer_id": entry["producerId"],
            "producer_epoch": entry["epoch"],
            "coordinator_epoch": entry["coordinatorEpoch"],
            "current_txn_first_offset": entry["currentTxnFirstOffset"],
            "last_sequence": entry["lastSequence"],
            "last_offset": entry["lastOffset"],
            "offset_delta": entry["offsetDelta"],
            "timestamp": entry["timestamp"],
        }
        for entry in value["producerEntries"]
    ]
