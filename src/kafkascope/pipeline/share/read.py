"""Reads exactly the offsets of a task by plain Fetch, on an executor: the same rows however often it runs. Records that
retention has deleted meanwhile are an error, or are left out where the user wants that."""

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kafkascope.client.cluster import Cluster
from kafkascope.client.describe.offsets import EARLIEST, fetch_offsets
from kafkascope.client.targets import Leader
from kafkascope.codec.records.record_data import RecordBatch, decode_records
from kafkascope.errors import InputError, ReachError, RefusedError
from kafkascope.pipeline.share.batch_offset import PartitionRanges
from kafkascope.pipeline.share.executor import Executor, executor
from kafkascope.pipeline.share.options import SOURCE, ShareOptions
from kafkascope.pipeline.share.rows import Rows
from kafkascope.schema.errors.error_codes import error_name

# Of one Fetch; a larger batch of the log comes whole. Twice as much costs more per record: it leaves the caches.
_MOST_BYTES, _LEAST_BYTES = 4_194_304, 65_536
# Of the bytes that acquired records took, for other sizes of those that remain.
_SLACK = 1.1
_FETCH_WAIT_MS = 500
_OFFSET_OUT_OF_RANGE = 1
_TOPIC_GONE = frozenset((3, 100))
# Of a broker with a quota: as many in a row, and seconds of each.
_MOST_PAUSES, _LONGEST_PAUSE = 100, 30.0
# Rows per batch sent to Spark, and their bytes: it works on them while the next ones are made.
_ROWS, _ROW_BYTES = 10_000, 1_048_576


def read_in_task(entry: PartitionRanges, at: int, options: ShareOptions) -> Iterator[pa.RecordBatch]:
    """On an executor, which stays connected."""
    return _read(executor(), entry, at, options)


def read_ranges(entry: PartitionRanges, at: int, options: ShareOptions) -> Iterator[pa.RecordBatch]:
    """Anywhere else: no connection is left."""
    here = Executor()
    try:
        yield from _read(here, entry, at, options)
    finally:
        here.close()


def _read(here: Executor, entry: PartitionRanges, at: int, options: ShareOptions) -> Iterator[pa.RecordBatch]:
    cluster = here.cluster(options.settings())
    reader, rows = PartitionReader(cluster, entry, options), Rows(entry, at)
    position: int | None = entry.ranges[0].first
    while position is not None:
        fetched = here.run(reader.fetch(position))
        for batch in rows.of(fetched.data, fetched.batches, position):
            count = max(min(_ROWS, _ROW_BYTES * len(batch) // max(len(fetched.data), 1)), 1)
            for start in range(0, len(batch), count):
                yield batch.slice(start, count)
        position = reader.next_after(fetched.end)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What is in the log up to the offset `end`, which is exclusive. Batches have no records yet."""

    end: int
    data: bytes = b""
    batches: tuple[RecordBatch, ...] = ()


class PartitionReader:
    def __init__(self, cluster: Cluster, entry: PartitionRanges, options: ShareOptions) -> None:
        self._cluster, self._entry, self._options = cluster, entry, options
        self._place = f"{entry.topic}-{entry.partition.partition}"
        self._last = entry.ranges[-1].last

    def next_after(self, end: int) -> int | None:
        """The first offset of the ranges from `end` on."""
        return next((max(part.first, end) for part in self._entry.ranges if part.last >= end), None)

    async def fetch(self, position: int) -> Fetched:
        """From `position` on, or from where the log starts if that is later."""
        last = next(part.last for part in self._entry.ranges if part.last >= position)
        row = await self._call(position)
        if row is None:
            return Fetched(last + 1)
        code = row["errorCode"]
        if code == _OFFSET_OUT_OF_RANGE:
            start = await self._log_start()
            gone = min(start - 1, last) if start > position else last
            self._lost(f"offsets {position:,}-{gone:,}")
            return Fetched(gone + 1)
        if code:
            raise RefusedError(f"Fetch: {self._place}: {error_name(code)} ({code})", code)
        data = row["records"] or b""
        whole = decode_records(data, unpack=False)
        batches: list[RecordBatch] = []
        end = position
        for batch in whole.batches:
            if batch.base_offset > self._last:
                break
            place = f"{self._place}, offsets {batch.base_offset:,}-{batch.last_offset:,}"
            if not batch.crc_ok:
                raise InputError(f"{place}: the checksum of this batch of the log is wrong")
            if batch.partition_leader_epoch > self._entry.epoch >= 0:
                epoch = batch.partition_leader_epoch
                self._lost(f"offsets {batch.base_offset:,}-{batch.last_offset:,}: replaced by leader epoch {epoch}")
            elif not batch.is_control:
                batches.append(batch)
            end = max(end, batch.last_offset + 1)
        if end == position and whole.batches and whole.batches[-1].base_offset > self._last:
            # The next batch of the log is after the ranges.
            end = self._last + 1
        elif end == position:
            if whole.batches or whole.truncated_bytes:
                raise InputError(f"Fetch: {self._place}: the response has no whole batch with offset {position:,}")
            if position < row["highWatermark"]:
                # Nothing is left of it (compaction), up to the end of the log.
                end = row["highWatermark"]
            else:
                self._lost(f"offsets {position:,}-{last:,}")
                end = last + 1
        return Fetched(end, data, tuple(batches))

    async def _log_start(self) -> int:
        """The response with OFFSET_OUT_OF_RANGE doesn't have it."""
        place = (self._entry.topic, self._entry.partition.partition)
        offsets, gaps = await fetch_offsets(self._cluster, [place], EARLIEST)
        if gaps:
            raise RefusedError(f"ListOffsets: {self._place}: {gaps[0].error}", gaps[0].code or -1)
        return offsets[place].offset

    async def _call(self, position: int) -> dict[str, Any] | None:
        partition = self._entry.partition
        size = self._bytes_from(position)
        asked = {
            "partition": partition.partition, "currentLeaderEpoch": -1, "fetchOffset": position,
            "logStartOffset": -1, "partitionMaxBytes": size,
        }  # fmt: skip
        value = {
            "maxWaitMs": _FETCH_WAIT_MS, "minBytes": 1, "maxBytes": size, "isolationLevel": 0,
            "sessionId": 0, "sessionEpoch": -1, "forgottenTopicsData": [], "rackId": "",
            "topics": [{"topicId": partition.topic_id, "partitions": [asked]}],
        }  # fmt: skip
        for _ in range(_MOST_PAUSES):
            try:
                answer = await self._cluster.call(
                    "Fetch", value, to=Leader(partition.topic_id, partition.partition), apart=True
                )
            except RefusedError as error:
                if error.code not in _TOPIC_GONE:
                    raise
                self._lost("the topic is gone")
                return None
            for topic in answer.value["responses"]:
                for response in topic["partitions"]:
                    if (topic["topicId"], response["partitionIndex"]) == partition:
                        row: dict[str, Any] = response
                        return row
            # Beyond a quota, a broker sends no partition, and how long it won't send any.
            pause = answer.value["throttleTimeMs"] / 1000
            if pause <= 0:
                break
            await asyncio.sleep(min(pause, _LONGEST_PAUSE))
        raise ReachError(f"{answer.address}: Fetch: the response doesn't have the partition {self._place}")

    def _bytes_from(self, position: int) -> int:
        """What the records from there on may take, by what they took when they were acquired."""
        left = sum(part.last - max(part.first, position) + 1 for part in self._entry.ranges if part.last >= position)
        size = round(left * self._entry.record_bytes * _SLACK) or _MOST_BYTES
        return min(max(size, _LEAST_BYTES), _MOST_BYTES)

    def _lost(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise InputError(
                f"{self._place}: {what}: no longer in the log, and not read yet;"
                " failOnDataLoss=false continues without these records"
            )
        print(f"{SOURCE}: {self._place}: {what}: no longer in the log, skipped", file=sys.stderr, flush=True)
