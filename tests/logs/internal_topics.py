"""Segments of Kafka's own topics with records of every type and version, as Kafka writes them and damaged."""

import random
from collections.abc import Iterator
from pathlib import Path

from kafkascope.codec.message import encode
from kafkascope.codec.records.control import TYPES
from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from kafkascope.logs.typed_records import INTERNAL_TOPICS, Messages, messages_of
from kafkascope.schema.catalog import message as message_
from kafkascope.schema.layouts.layout import layout
from tests.support.values import THEMES, random_value

_FRAMED = ("__cluster_metadata", "__remote_log_metadata")
_NUMBERS = range(64)
_VALUES = len(THEMES) + 4


def records_of(topic: str) -> Iterator[Record]:
    """Of every type and version; each key also as a tombstone."""
    offset = 0
    for number in _NUMBERS:
        known = messages_of(topic, number)
        for key, value in _contents(number, known) if known else ():
            yield Record(offset, 1_767_268_800_000 + offset, key, value)
            offset += 1 + offset % 3


def _contents(number: int, known: Messages) -> Iterator[tuple[bytes | None, bytes | None]]:
    _, key_message, key_version, value_message = known
    for version in message_(value_message).all_versions():
        for case in range(_VALUES):
            value = encode(value_message, version, random_value(layout(value_message, version), case))
            if key_message is None:
                yield None, bytes([1, *_uvarint(number), version]) + value
                continue
            key = encode(key_message, key_version, random_value(layout(key_message, key_version), case))
            yield number.to_bytes(2, "big") + key, version.to_bytes(2, "big") + value
            if case == 0:
                yield number.to_bytes(2, "big") + key, None


def _uvarint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 0x7F | 0x80, number >> 7])


def control_data(random_: random.Random) -> bytes:
    """A batch per record, as brokers write them."""
    data = b""
    for number, (_, message) in TYPES.items():
        for version in message_(message).all_versions():
            for case in range(_VALUES):
                body = encode(message, version, random_value(layout(message, version), case))
                if message == "EndTxnMarker":
                    body = version.to_bytes(2, "big") + body
                key = b"\0\0" + number.to_bytes(2, "big")
                record = Record(random_.randrange(1 << 40), 1, key, body)
                data += encode_records([new_batch([record], producer_id=7, producer_epoch=1, is_control=True)])
    return data


def mutated(records: list[Record], random_: random.Random) -> list[Record]:
    """Each with one to three bytes of key or value changed, cut off or added."""
    return [
        Record(record.offset, record.timestamp, _changed(record.key, random_), _changed(record.value, random_))
        for record in records
    ]


def _changed(data: bytes | None, random_: random.Random) -> bytes | None:
    if not data or random_.random() < 0.4:
        return data
    changed = bytearray(data)
    for _ in range(random_.randrange(1, 4)):
        at = random_.randrange(len(changed)) if changed else 0
        match random_.randrange(4):
            case 0:
                del changed[at:]
            case 1:
                changed[at:at] = random_.randbytes(random_.randrange(1, 5))
            case _ if changed:
                changed[at] = random_.choice([0, 1, 0x7F, 0x80, 0xFF, random_.randrange(256)])
    return bytes(changed)


def write_segment(folder: Path, topic: str, batches: list[bytes]) -> Path:
    path = folder / f"{topic}-0" / f"{0:020}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(batches))
    return path


def packed(records: list[Record], compression: str, size: int = 50) -> list[bytes]:
    return [
        encode_records([new_batch(records[at : at + size], compression=compression, producer_id=3, base_sequence=at)])
        for at in range(0, len(records), size)
    ]


__all__ = ["INTERNAL_TOPICS", "control_data", "mutated", "packed", "records_of", "write_segment"]
