"""Runs the driver's half of the source in a thread of its own, so that heartbeats and renewals go on while a batch
runs, and plans the tasks that read a batch. All that it knows of a batch is in Spark's offset log."""

import asyncio
import secrets
import signal
import sys
import threading
from collections.abc import Coroutine, Iterator
from types import FrameType
from typing import Any, TypeVar
from uuid import UUID

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from kafkascope.client.routing import uuid_key
from kafkascope.errors import InputError
from kafkascope.formatting import printable
from kafkascope.pipeline.share.acquirer import Acquirer
from kafkascope.pipeline.share.batch_offset import BatchOffset, PartitionRanges, parse_offset
from kafkascope.pipeline.share.options import SOURCE, ShareOptions
from kafkascope.pipeline.share.read import read_in_task
from kafkascope.pipeline.share.tasks import cut

T = TypeVar("T")


class RangesPartition(InputPartition):
    """What one task reads: parts of the ranges of one partition."""

    def __init__(self, entry: PartitionRanges, at: int) -> None:
        super().__init__(None)
        self.entry, self.at = entry, at

    def __repr__(self) -> str:
        return f"RangesPartition({self.entry.topic}-{self.entry.partition.partition})"


class ShareReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark makes several, in several processes; only the one that is asked for offsets joins the group."""

    def __init__(self, options: ShareOptions) -> None:
        self._options = options
        self._thread: _Thread | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return BatchOffset(0, uuid_key(UUID(bytes=secrets.token_bytes(16)))).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.max_records)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        thread = self._running()
        thread.wait(thread.acquirer.only_available())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        thread = self._running()
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.max_records
        batch = thread.wait(thread.acquirer.next_batch(parse_offset(start), most))
        return start if batch is None else batch.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return None if self._thread is None else self._thread.acquirer.metrics()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        first, last = parse_offset(start), parse_offset(end)
        if first.batch == last.batch:
            return []
        if first.batch + 1 != last.batch:
            raise InputError(f"{SOURCE}: the checkpoint lacks the batches between {first.batch} and {last.batch}")
        return [RangesPartition(entry, last.at) for entry in cut(last.records, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangesPartition)
        return read_in_task(partition.entry, partition.at, self._options)

    def commit(self, end: dict[str, Any]) -> None:
        if self._thread is not None:
            self._thread.wait(self._thread.acquirer.commit(parse_offset(end)))

    def stop(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.close()

    def _running(self) -> "_Thread":
        if self._thread is None:
            self._thread = _Thread(self._options)
            _stop_when_terminated()
        return self._thread


class _Thread:
    """An event loop that runs until `close`."""

    def __init__(self, options: ShareOptions) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name=f"kafkascope reads for {options.group}", daemon=True
        )
        self._thread.start()
        self.acquirer = self.wait(_acquirer(options))

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        try:
            self.wait(self.acquirer.close())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


async def _acquirer(options: ShareOptions) -> Acquirer:
    return Acquirer(options, _note)


def _note(text: str) -> None:
    # Spark writes it to the driver's log.
    print(f"{SOURCE}: {printable(text)}", file=sys.stderr, flush=True)


def _stop_when_terminated() -> None:
    """Spark ends this process with SIGTERM: it leaves the group first, so that others get its records at once."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _exit)


def _exit(_: int, __: FrameType | None) -> None:
    sys.exit(0)
