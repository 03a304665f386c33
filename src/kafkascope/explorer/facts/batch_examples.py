"""Builds example record data in every format, with the bytes of each batch."""

from collections.abc import Callable
from dataclasses import dataclass

from kafkascope.codec.message import encode
from kafkascope.codec.records.record_data import Record, RecordBatch, encode_records, new_batch

# 2026-01-01 12:00 UTC, as in the other examples.
_START = 1_767_268_800_000
_PAID = Record(1041, _START, b"order-1001", b'{"state":"paid"}', (("source", b"web"),))
_GONE = Record(1042, _START + 250, b"order-0990", None)
_PLAIN = Record(1041, _START, b"order-1001", b'{"state":"paid"}')


@dataclass(frozen=True, slots=True)
class BatchExample:
    """`id` is its name in addresses, `about` describes what to look at."""

    id: str
    title: str
    about: str
    make: Callable[[], RecordBatch]

    @property
    def data(self) -> bytes:
        return encode_records([self.make()])


def _marker() -> RecordBatch:
    """The batch that the transaction coordinator makes the leader write at a commit."""
    key = bytes(2) + (1).to_bytes(2, "big")
    value = bytes(2) + encode("EndTxnMarker", 0, {"coordinatorEpoch": 3})
    return new_batch(
        [Record(1043, _START + 900, key, value)],
        producer_id=4001,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
        partition_leader_epoch=7,
    )


EXAMPLES = (
    BatchExample(
        "v2",
        "Magic 2, two records",
        "A record's offset and timestamp are deltas to the batch's, as zig-zag varints. The second record has"
        " a null value: a tombstone in a compacted topic.",
        lambda: new_batch([_PAID, _GONE], partition_leader_epoch=7),
    ),
    BatchExample(
        "v2-transactional",
        "Magic 2, from a transactional producer",
        "Producer id, epoch and sequence let the broker drop duplicates. The transactional flag is set.",
        lambda: new_batch(
            [_PLAIN], producer_id=4001, producer_epoch=0, base_sequence=12, is_transactional=True,
            partition_leader_epoch=7,
        ),
    ),
    BatchExample(
        "v2-zstd",
        "Magic 2, compressed with zstd",
        "The header stays the same; everything after it is compressed. The checksum covers the compressed bytes.",
        lambda: new_batch([_PAID, _GONE], compression="zstd", partition_leader_epoch=7),
    ),
    BatchExample(
        "v2-control",
        "Magic 2, a control batch that commits",
        "Consumers never pass it to the application. The key is version and type, the value an EndTxnMarker.",
        _marker,
    ),
    BatchExample(
        "v1",
        "Magic 1, one message",
        "A message set has no batch header: each message has its own offset and timestamp.",
        lambda: new_batch([_PLAIN], magic=1),
    ),
    BatchExample(
        "v1-gzip",
        "Magic 1, compressed with gzip",
        "A message whose value is a whole message set. Its offset is that of the last message inside, which count"
        " from 0.",
        lambda: new_batch([_PLAIN, Record(1042, _START + 250, b"order-0990", None)], magic=1, compression="gzip"),
    ),
    BatchExample(
        "v0",
        "Magic 0, one message",
        "Like magic 1, without the timestamp. Offsets inside a compressed message are absolute.",
        lambda: new_batch([Record(1041, -1, b"order-1001", b'{"state":"paid"}')], magic=0),
    ),
)  # fmt: skip
