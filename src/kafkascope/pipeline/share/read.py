"""Reads exactly the offsets of a task by plain Fetch, on an executor: the same rows however often it runs. Records that
retention has deleted meanwhile are an error, or are left out where the user wants that."""

import asyncio
import sys
from bisect import bisect_left, bisect_right
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any

import pyarrow as pa

from kafkascope.client.cluster import Cluster, connect
from kafkascope.client.describe.offsets import EARLIEST, fetch_offsets
from kafkascope.client.targets import Leader
from kafkascope.codec.records.record_data import Record, decode_records
from kafkascope.errors import InputError, ReachError, RefusedError
from kafkascope.pipeline.share.batch_offset import LoggedRange, PartitionRanges
from kafkascope.pipeline.share.options import SOURCE, ShareOptions
from kafkascope.pipeline.share.rows import rows
from kafkascope.schema.errors.error_codes import error_name

# Of one Fetch; a larger batch of the log comes whole.
_FETCH_BYTES = 8_388_608
_FETCH_WAIT_MS = 500
_OFFSET_OUT_OF_RANGE = 1
_TOPIC_GONE = frozenset((3, 100))
# Of a broker with a quota: as many in a row, and seconds of each.
_MOST_PAUSES, _LONGEST_PAUSE = 100, 30.0
# Rows per batch sent to Spark.
_ROWS = 10_000


def read_ranges(entry: PartitionRanges, at: int, options: ShareOptions) -> Iterator[pa.RecordBatch]:
    loop = asyncio.new_event_loop()
    batches = _read(entry, at, options)
    try:
        while True:
            try:
                yield loop.run_until_complete(anext(batches))
            except StopAsyncIteration:
                return
    finally:
        loop.run_until_complete(batches.aclose())
        loop.close()


async def _read(entry: PartitionRanges, at: int, options: ShareOptions) -> AsyncGenerator[pa.RecordBatch, None]:
    async with connect(options.settings()) as cluster:
        reader = PartitionReader(cluster, entry, options)
        for part in entry.ranges:
            async for records in reader.records(part):
                for start in range(0, len(records), _ROWS):
                    yield rows(entry, records[start : start + _ROWS], part.delivery_count, at + part.until)


class PartitionReader:
    """Reads ranges in ascending order; what a fetch has brought beyond a range serves the next ones."""

    def __init__(self, cluster: Cluster, entry: PartitionRanges, options: ShareOptions) -> None:
        self._cluster, self._entry, self._options = cluster, entry, options
        self._place = f"{entry.topic}-{entry.partition.partition}"
        # Records at hand, and the offsets that they cover.
        self._records: list[Record] = []
        self._from = self._to = -1

    async def records(self, part: LoggedRange) -> AsyncIterator[list[Record]]:
        position = part.first
        while position <= part.last:
            if not self._from <= position < self._to:
                await self._fetch(position, part.last)
            if self._from > position:
                # Deleted, and that is all right.
                position = self._from
                continue
            start = bisect_left(self._records, position, key=_offset)
            end = bisect_right(self._records, part.last, key=_offset)
            if start < end:
                yield self._records[start:end]
            position = self._to

    async def _fetch(self, position: int, last: int) -> None:
        """Sets what is at hand: from `position` on, or from where the log starts if that is later."""
        row = await self._call(position)
        if row is None:
            self._records, self._from, self._to = [], position, last + 1
            return
        code = row["errorCode"]
        if code == _OFFSET_OUT_OF_RANGE:
            start = await self._log_start()
            gone = min(start - 1, last) if start > position else last
            self._lost(f"offsets {position:,}-{gone:,}")
            self._records, self._from, self._to = [], gone + 1, gone + 1
            return
        if code:
            raise RefusedError(f"Fetch: {self._place}: {error_name(code)} ({code})", code)
        records: list[Record] = []
        covered = position
        whole = decode_records(row["records"] or b"")
        for batch in whole.batches:
            if not batch.crc_ok:
                place = f"{self._place}, offsets {batch.base_offset:,}-{batch.last_offset:,}"
                raise InputError(f"{place}: the checksum of this batch of the log is wrong")
            covered = max(covered, batch.last_offset + 1)
            if batch.partition_leader_epoch > self._entry.epoch >= 0 and batch.base_offset <= last:
                epoch = batch.partition_leader_epoch
                self._lost(f"offsets {batch.base_offset:,}-{batch.last_offset:,}: replaced by leader epoch {epoch}")
                continue
            if not batch.is_control:
                records += batch.records or ()
        if covered == position:
            if whole.batches or whole.truncated_bytes:
                raise InputError(f"Fetch: {self._place}: the response has no whole batch with offset {position:,}")
            if position < row["highWatermark"]:
                # Nothing is left of it (compaction), up to the end of the log.
                covered = row["highWatermark"]
            else:
                self._lost(f"offsets {position:,}-{last:,}")
                covered = last + 1
        self._records, self._from, self._to = records, position, covered

    async def _log_start(self) -> int:
        """The response with OFFSET_OUT_OF_RANGE doesn't have it."""
        place = (self._entry.topic, self._entry.partition.partition)
        offsets, gaps = await fetch_offsets(self._cluster, [place], EARLIEST)
        if gaps:
            raise RefusedError(f"ListOffsets: {self._place}: {gaps[0].error}", gaps[0].code or -1)
        return offsets[place].offset

    async def _call(self, position: int) -> dict[str, Any] | None:
        partition = self._entry.partition
        asked = {
            "partition": partition.partition, "currentLeaderEpoch": -1, "fetchOffset": position,
            "logStartOffset": -1, "partitionMaxBytes": _FETCH_BYTES,
        }  # fmt: skip
        value = {
            "maxWaitMs": _FETCH_WAIT_MS, "minBytes": 1, "maxBytes": _FETCH_BYTES, "isolationLevel": 0,
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

    def _lost(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise InputError(
                f"{self._place}: {what}: no longer in the log, and not read yet;"
                " the option failOnDataLoss=false goes on without these records"
            )
        print(f"{SOURCE}: {self._place}: {what}: no longer in the log, left out", file=sys.stderr, flush=True)


def _offset(record: Record) -> int:
    return record.offset
