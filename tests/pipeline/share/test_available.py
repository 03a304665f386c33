"""What a query with the trigger `availableNow` reads, without Spark: all that its topics had when it started, however
slow brokers, locks and batches are, and nothing later."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import pytest

from kafkascope.client.transport.connection import Connection
from kafkascope.errors import UsageError
from kafkascope.pipeline.share import available
from kafkascope.pipeline.share.acquirer import Acquirer
from kafkascope.pipeline.share.batch_offset import BatchOffset
from kafkascope.pipeline.share.ledger import spans
from kafkascope.pipeline.share.options import parse_options
from tests.client.consumer_stage import Stage, stage
from tests.pipeline.share.queries import prepared, produced, view

if TYPE_CHECKING:
    from lab.cluster import Cluster as Lab

PATIENCE = 240.0
# Of locks, by the group's config.
SECOND, MINUTE = "1000", "60000"
START = BatchOffset(0, "AAAAAAAAAAAAAAAAAAAAAQ")
_GONE = "AAAAAAAAAAAAAAAAAAAAAg"
# The newest versions of Kafka 4.1 for ShareFetch, ShareAcknowledge and DescribeShareGroupOffsets.
_OF_4_1 = {78: 1, 79: 1, 90: 0}
Busy = Callable[[Acquirer], Awaitable[None]]


async def rest(_: Acquirer) -> None:
    pass


async def offsets(
    bootstrap: str, topic: str, group: str, limit: int, busy: Busy = rest, **more: str
) -> list[tuple[int, int]]:
    """Partition and offset of each record, in the order of batches; `busy` is called with each batch under way."""
    options = {"bootstrap": bootstrap, "topics": topic, "group": group, "timeout": str(PATIENCE), **more}
    acquirer, start = Acquirer(parse_options(options), print), START
    places: list[tuple[int, int]] = []
    try:
        async with asyncio.timeout(PATIENCE):
            await acquirer.only_available()
            while (batch := await acquirer.next_batch(start, limit)) is not None:
                assert batch.size <= limit
                await busy(acquirer)
                for partition, first, last in spans(batch.records):
                    places += ((partition.partition, offset) for offset in range(first, last + 1))
                start = batch
    finally:
        await acquirer.close()
    return places


def all_of(count: int, partitions: int = 1) -> list[tuple[int, int]]:
    return [(partition, offset) for partition in range(partitions) for offset in range(count)]


@pytest.mark.parametrize("limit", [1_000, 10_000])
def test_slow_batches_of_any_size_read_everything(cluster: "Lab", limit: int) -> None:
    """A partition of 1,600 records, of which brokers lock 2,000 at once; the first batch takes longer than a lock."""
    topic, group = prepared(cluster.bootstrap, [b"value"] * 1_600, share_record_lock_duration_ms=SECOND)
    begun: list[float] = []

    async def busy(acquirer: Acquirer) -> None:
        begun.append(asyncio.get_running_loop().time())
        # Locks that a busy machine lost are waited for in vain.
        while len(begun) == 1 and (held := acquirer.metrics())["held"] and held["renewed"] < 2 * 1_600:
            await asyncio.sleep(0.01)

    assert asyncio.run(offsets(cluster.bootstrap, topic, group, limit, busy)) == all_of(1_600)
    assert view(cluster.bootstrap, group).lag == 0


def test_nothing_later_is_read(cluster: "Lab") -> None:
    topic, group = prepared(cluster.bootstrap, [b"value"] * 10, 2)

    async def busy(_: Acquirer) -> None:
        await asyncio.to_thread(produced, cluster.bootstrap, topic, [b"later"])

    assert sorted(asyncio.run(offsets(cluster.bootstrap, topic, group, 7, busy))) == all_of(10, 2)
    assert (view(cluster.bootstrap, group).lag or 0) > 0


def test_locks_of_a_member_that_is_gone_are_waited_for(cluster: "Lab", monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection is open, so that only time ends them."""
    monkeypatch.setattr(available, "QUIET_SECONDS", 0.0)
    assert asyncio.run(beside_another(cluster.bootstrap, SECOND)) == all_of(10)


def test_what_another_member_keeps_is_left_to_it(cluster: "Lab", monkeypatch: pytest.MonkeyPatch) -> None:
    """It has locked the records for a minute; the locks that we would get last a second."""
    monkeypatch.setattr(available, "QUIET_SECONDS", 0.0)
    assert asyncio.run(beside_another(cluster.bootstrap, MINUTE)) == []


def test_brokers_of_4_1_are_read_to_the_end_too(
    cluster: "Lab", monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They don't renew, and don't report the lag: what we have acknowledged ourselves is what is known."""
    monkeypatch.setattr(available, "QUIET_SECONDS", 1e9)
    greet = Connection.greet

    def older(self: Connection, versions: Mapping[int, tuple[int, int]]) -> None:
        greet(self, {key: (first, min(last, _OF_4_1.get(key, last))) for key, (first, last) in versions.items()})

    monkeypatch.setattr(Connection, "greet", older)
    topic, group = prepared(cluster.bootstrap, [b"value"] * 1_600, 2)
    assert sorted(asyncio.run(offsets(cluster.bootstrap, topic, group, 700))) == all_of(1_600, 2)
    assert "locks aren't renewed" in capsys.readouterr().out
    with pytest.raises(UsageError, match=r"renewal needs Kafka 4\.2 or newer; leave renew out"):
        asyncio.run(offsets(cluster.bootstrap, topic, group, 700, renew="true"))


async def beside_another(bootstrap: str, lock: str) -> list[tuple[int, int]]:
    def prepare() -> tuple[str, str]:
        return prepared(bootstrap, [b"value"] * 10, share_record_lock_duration_ms=lock)

    topic, group = await asyncio.to_thread(prepare)
    async with stage(bootstrap) as on:
        await lock_and_leave(on, topic, group)
        await on.group(group, share_record_lock_duration_ms=SECOND)
        return await offsets(bootstrap, topic, group, 100)


async def lock_and_leave(on: Stage, topic: str, group: str) -> None:
    """Another member of the group gets all records, and isn't in the group any more."""
    topic_id = await on.cluster.topic_id(topic)
    heartbeat = {"groupId": group, "memberId": _GONE, "rackId": None}
    epoch, assigned = 0, False
    async with asyncio.timeout(PATIENCE):
        while not assigned:
            value = {**heartbeat, "memberEpoch": epoch, "subscribedTopicNames": [topic] if epoch == 0 else None}
            answer = (await on.cluster.call("ShareGroupHeartbeat", value)).value
            assert answer["errorCode"] == 0, answer
            epoch = answer["memberEpoch"]
            assigned = bool((answer["assignment"] or {}).get("topicPartitions"))
        locked = session = 0
        partitions = [{"topicId": topic_id, "partitions": [{"partitionIndex": 0, "acknowledgementBatches": []}]}]
        while locked < 10:
            fetch = {"groupId": group, "memberId": _GONE, "shareSessionEpoch": session, "maxWaitMs": 100, "minBytes": 1}
            fetch |= {"maxBytes": 1_000_000, "maxRecords": 100, "batchSize": 100, "forgottenTopicsData": []}
            fetch |= {"shareAcquireMode": 0, "isRenewAck": False, "topics": [] if session else partitions}
            answer = (await on.cluster.call("ShareFetch", fetch, to=f"leader:{topic}-0")).value
            assert answer["errorCode"] == 0, answer
            session += 1
            for row in (row for part in answer["responses"] for row in part["partitions"]):
                locked += sum(part["lastOffset"] - part["firstOffset"] + 1 for part in row["acquiredRecords"])
        await on.cluster.call("ShareGroupHeartbeat", {**heartbeat, "memberEpoch": -1, "subscribedTopicNames": None})
