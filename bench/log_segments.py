"""Segments to measure with: topics of users, and Kafka's own with what coordinators and controllers write most.
Each has a pool of different batches, repeated with rising offsets, which aren't under the checksum; and an index."""

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import pack
from uuid import UUID

from kafkascope.codec.message import encode
from kafkascope.codec.records.record_data import Record, encode_records, new_batch

START_MS = 1_767_268_800_000
MB = 1_000_000
# A smaller run for a busy machine; the aims are about 1,000.
MIXED_MEGABYTES = int(os.environ.get("KAFKASCOPE_BENCH_LOG_MB", "1000"))
_POOL = 64
_INDEX_BYTES = 4_096
_UUID = UUID(int=0x1234_5678_9ABC_DEF0_1234_5678_9ABC_DEF0)


@dataclass(frozen=True, slots=True)
class Kind:
    """`share` of the mixed segments is of this topic."""

    title: str
    topic: str
    decoder: tuple[str, ...]
    share: float
    pool: Callable[[], list[bytes]]
    records: int


@dataclass(frozen=True, slots=True)
class Segment:
    kind: Kind
    path: Path
    size: int
    batches: int

    @property
    def records(self) -> int:
        return self.batches * self.kind.records


def kinds() -> list[Kind]:
    return [
        Kind("a user's topic, batches of 16 kB", "orders", (), 0.6, lambda: _pool(_order, 100), 100),
        Kind("a user's topic, a record per batch", "clicks", (), 0.1, lambda: _pool(_order, 1), 1),
        Kind("__consumer_offsets", "__consumer_offsets", ("--offsets-decoder",), 0.15, lambda: _pool(_commit, 10), 10),
        Kind("__cluster_metadata", "__cluster_metadata", ("--cluster-metadata-decoder",), 0.08,
             lambda: _pool(_change, 20), 20),
        Kind("__transaction_state", "__transaction_state", ("--transaction-log-decoder",), 0.04,
             lambda: _pool(_transaction, 1), 1),
        Kind("__share_group_state", "__share_group_state", ("--share-group-state-decoder",), 0.03,
             lambda: _pool(_share, 4), 4),
    ]  # fmt: skip


def mixed(folder: Path, megabytes: float) -> Iterator[Segment]:
    for kind in kinds():
        yield written(folder, kind, int(kind.share * megabytes * MB))


def written(folder: Path, kind: Kind, size: int) -> Segment:
    """At least a batch."""
    pool = kind.pool()
    path = folder / f"{kind.topic}-0" / f"{0:020}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    at, number, indexed_at = 0, 0, 0
    with path.open("wb") as file, path.with_suffix(".index").open("wb") as index:
        while at < size or not number:
            batch, first = pool[number % len(pool)], number * kind.records
            if at - indexed_at > _INDEX_BYTES:
                index.write(pack(">ii", first + kind.records - 1, at))
                indexed_at = at
            file.write(first.to_bytes(8, "big"))
            file.write(memoryview(batch)[8:])
            at += len(batch)
            number += 1
    return Segment(kind, path, at, number)


def _pool(record: Callable[[random.Random, int], tuple[bytes | None, bytes | None]], count: int) -> list[bytes]:
    random_ = random.Random(7)
    return [
        encode_records(
            [new_batch([Record(at, START_MS + at, *record(random_, at)) for at in range(count)], producer_id=at_batch)]
        )
        for at_batch in range(_POOL)
    ]


def _order(random_: random.Random, at: int) -> tuple[bytes, bytes]:
    return b"key-%05d" % at, random_.randbytes(70) + b"a value that is text in part, as most are, and in part not"


def _commit(random_: random.Random, _: int) -> tuple[bytes, bytes | None]:
    key = {"group": f"checkout-{random_.randrange(40)}", "topic": random_.choice(["orders", "payments", "clicks"]),
           "partition": random_.randrange(60)}  # fmt: skip
    value = {"offset": random_.randrange(1 << 33), "leaderEpoch": random_.randrange(30), "metadata": "",
             "commitTimestamp": START_MS + random_.randrange(1 << 30)}  # fmt: skip
    written = None if random_.random() < 0.02 else b"\0\4" + encode("OffsetCommitValue", 4, value)
    return b"\0\1" + encode("OffsetCommitKey", 1, key), written


def _change(random_: random.Random, at: int) -> tuple[None, bytes]:
    """Mostly changes of leaders and in-sync replicas; a topic with a partition and a setting in twenty records."""
    if at == 17:
        return None, b"\1\2\0" + encode("TopicRecord", 0, {"name": f"orders-{at}", "topicId": _UUID})
    if at == 18:
        value = {"partitionId": 3, "topicId": _UUID, "replicas": [1, 2, 3], "isr": [1, 2, 3], "leader": 1,
                 "directories": [_UUID] * 3}  # fmt: skip
        return None, b"\1\3\1" + encode("PartitionRecord", 1, value)
    if at == 19:
        setting = {"resourceType": 2, "resourceName": f"orders-{at}", "name": "retention.ms", "value": "86400000"}
        return None, b"\1\4\0" + encode("ConfigRecord", 0, setting)
    change = {"partitionId": random_.randrange(60), "topicId": _UUID, "isr": random_.sample([1, 2, 3, 4, 5, 6], 3),
              "leader": random_.randrange(1, 7)}  # fmt: skip
    return None, b"\1\5\0" + encode("PartitionChangeRecord", 0, change)


def _transaction(random_: random.Random, _: int) -> tuple[bytes, bytes]:
    status = random_.choice([0, 1, 1, 4, 5])
    value = {"producerId": random_.randrange(1 << 20), "producerEpoch": 3, "transactionTimeoutMs": 60_000,
             "transactionStatus": status, "transactionLastUpdateTimestampMs": START_MS,
             "transactionStartTimestampMs": START_MS,
             "transactionPartitions": [{"topic": "orders", "partitionIds": [1, 5, 7]}]}  # fmt: skip
    key = encode("TransactionLogKey", 0, {"transactionalId": f"billing-{random_.randrange(100)}"})
    return b"\0\0" + key, b"\0\0" + encode("TransactionLogValue", 0, value)


def _share(random_: random.Random, _: int) -> tuple[bytes, bytes]:
    first = random_.randrange(1 << 33)
    batches = [{"firstOffset": first + at, "lastOffset": first + at, "deliveryState": at % 3, "deliveryCount": 1}
               for at in range(6)]  # fmt: skip
    value = {"snapshotEpoch": 3, "leaderEpoch": 2, "startOffset": first, "deliveryCompleteCount": 2,
             "stateBatches": batches}  # fmt: skip
    key = encode("ShareUpdateKey", 0, {"groupId": "pickers", "topicId": _UUID, "partition": random_.randrange(9)})
    return b"\0\1" + key, b"\0\0" + encode("ShareUpdateValue", 0, value)
