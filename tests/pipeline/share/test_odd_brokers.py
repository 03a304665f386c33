"""The source's two halves at brokers that limit it, that have lost records, and that send nonsense: one line, nothing
left out in silence, and nothing acknowledged that wasn't handed out."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from kafkascope.client.share.values import SharePartition
from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from kafkascope.errors import InputError, KafkascopeError, ReachError
from kafkascope.pipeline.share.batch_offset import LoggedRange, PartitionRanges
from kafkascope.pipeline.share.options import parse_options
from kafkascope.pipeline.share.read import read_ranges
from kafkascope.pipeline.share.stream_reader import RangesPartition, ShareReader
from tests.client.servers import Peer, serving
from tests.client.test_share_hostile import Brokers, serving_both

TOPIC = UUID(int=7)
SEEDS = range(100, 108)
# Asked for, of each of them.
BATCHES = 8


def batch(first: int, count: int, epoch: int = 3) -> bytes:
    records = [Record(offset, 1_700_000_000_000, None, b"value") for offset in range(first, first + count)]
    return encode_records([new_batch(records, partition_leader_epoch=epoch)])


def read(answers: list[dict[str, Any]], *, fail: bool = True) -> list[int]:
    """Offsets 10 to 19, acquired under leader epoch 3, from a broker that sends these responses to Fetch."""

    async def serve(peer: Peer) -> None:
        request = await peer.greet()
        while True:
            if request.api == "Fetch":
                await peer.answer(request, answers.pop(0))
            else:
                row = {"partitionIndex": 0, "leaderId": 1, "leaderEpoch": 3}
                topic = {"topicId": TOPIC, "name": "orders", "partitions": [row]}
                await peer.answer(request, peer.metadata(topics=[topic]))
            request = await peer.greet()

    def rows(host: str) -> list[int]:
        texts = {"bootstrap": host, "group": "g", "topics": "orders", "timeout": "10", "failOnDataLoss": str(fail)}
        entry = PartitionRanges("orders", SharePartition(TOPIC, 0), 3, (LoggedRange(10, 19, 1, 3_000),))
        return [row["offset"] for part in read_ranges(entry, 0, parse_options(texts)) for row in part.to_pylist()]

    async def run() -> list[int]:
        async with serving(serve) as address:
            return await asyncio.to_thread(rows, str(address))

    offsets = asyncio.run(run())
    assert not answers
    return offsets


def fetched(data: bytes, **more: int) -> dict[str, Any]:
    row = {"partitionIndex": 0, "highWatermark": 100, "records": data} | more
    return {"responses": [{"topicId": TOPIC, "partitions": [row]}]}


def test_a_quota_is_waited_for() -> None:
    limited = {"responses": [], "throttleTimeMs": 20}
    assert read([limited, limited, fetched(batch(10, 5)), limited, fetched(batch(15, 5))]) == list(range(10, 20))


def test_a_response_without_the_partition_is_an_error() -> None:
    with pytest.raises(ReachError, match=r"127\.0\.0\.1:\d+: Fetch: the response doesn't have the partition orders-0"):
        read([{"responses": []}])


def test_records_of_a_later_leader_are_an_error_or_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="orders-0: offsets 10-19: replaced by leader epoch 4: no longer in the log"):
        read([fetched(batch(10, 10, 4))])
    assert read([fetched(batch(10, 5)), fetched(batch(15, 5, 4))], fail=False) == list(range(10, 15))
    assert "orders-0: offsets 15-19: replaced by leader epoch 4: no longer in the log" in capfd.readouterr().err


@pytest.mark.parametrize("data", [batch(10, 10)[:-1], batch(0, 10)], ids=["cut", "earlier"])
def test_records_that_a_response_lacks_are_not_taken_for_gone(data: bytes) -> None:
    with pytest.raises(InputError, match="orders-0: the response has no whole batch with offset 10"):
        read([fetched(data)])


def play(seed: int) -> tuple[list[str], Brokers]:
    """Both halves of the source at the brokers of `test_share_hostile`, again and again; what they raise."""
    brokers = Brokers(seed)

    def drive(host: str) -> list[str]:
        texts = {"bootstrap": host, "group": "g", "topics": "orders", "timeout": "2", "maxWait": "0.2"}
        errors, left = [], BATCHES
        while left:
            options = parse_options(texts | {"failOnDataLoss": "false"})
            reader = ShareReader(options)
            start = reader.initialOffset()
            try:
                while left:
                    left -= 1
                    end = reader.latestOffset(start, ReadAllAvailable())
                    for part in reader.partitions(start, end):
                        # A task's own connections are one per process.
                        assert isinstance(part, RangesPartition)
                        for _ in read_ranges(part.entry, part.at, options):
                            pass
                    start = end
            except KafkascopeError as error:
                errors.append(str(error))
            finally:
                reader.stop()
        return errors

    async def run() -> list[str]:
        async with serving_both(brokers) as host:
            return await asyncio.to_thread(drive, host)

    return asyncio.run(run()), brokers


def test_nonsense_is_one_line_and_acknowledges_nothing_that_was_not_handed_out() -> None:
    """Each broker asserts the latter at every request."""
    before = threading.active_count()
    with ThreadPoolExecutor(len(SEEDS)) as pool:
        runs = list(pool.map(play, SEEDS))
    for seed, (errors, _) in zip(SEEDS, runs, strict=True):
        assert all("\n" not in error for error in errors), (seed, errors)
    assert sum(brokers.acknowledged for _, brokers in runs)
    assert threading.active_count() <= before
