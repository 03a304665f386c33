"""The share consumer against a real broker. `test_share_soak` has it in one group with Kafka's own."""

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from kafkascope.client import ShareConsumer, connect, plain_share_consumer, share_consumer
from kafkascope.client.consumer.results import Refused
from kafkascope.client.describe.share_group import describe_share_group
from kafkascope.errors import AcknowledgeError, KafkascopeError, NotFoundError, ReachError, RefusedError, UsageError
from lab.program import java
from tests.client.consumer_stage import Stage, stage
from tests.support.cli import is_one_line_error, process

if TYPE_CHECKING:
    from lab.cluster import Cluster as Lab

# An idle machine takes a fiftieth of it.
PATIENCE = 60.0
INVALID_RECORD_STATE = 121


def fresh() -> tuple[str, str]:
    """A topic and a group that no other test has."""
    number = uuid4().hex[:8]
    return f"share-{number}", f"group-{number}"


async def prepare(on: Stage, count: int, partitions: int = 1, **configs: str) -> tuple[str, str]:
    topic, group = fresh()
    await on.topic(topic, partitions)
    await on.group(group, **configs)
    for partition in range(partitions):
        await on.produce(topic, [b"value %d" % number for number in range(count)], partition)
    return topic, group


async def take_all(consumer: ShareConsumer, count: int) -> dict[int, int]:
    """Offsets of one partition with their delivery counts, until there are so many; nothing is acknowledged."""
    seen: dict[int, int] = {}
    deadline = time.monotonic() + PATIENCE
    while len(seen) < count:
        batch = await consumer.take(max(deadline - time.monotonic(), 0))
        assert batch is not None, f"{len(seen)} of {count} records in {PATIENCE:g} s"
        seen |= {record.offset: record.delivery_count for record in batch}
        held.append(batch)
    return seen


# Keeps batches from the garbage collector: what the application dropped is not renewed.
held: list[object] = []


def test_released_records_are_delivered_again_and_rejected_ones_are_not(cluster: "Lab") -> None:
    async def run() -> None:
        async with stage(cluster.bootstrap) as on:
            topic, group = await prepare(on, 30)
            async with share_consumer(cluster.bootstrap, group=group, topics=[topic], timeout=PATIENCE) as consumer:
                assert set((await take_all(consumer, 30)).values()) == {1}
                batch = held[-1]
                for index, record in enumerate(batch):  # type: ignore[arg-type, var-annotated]
                    (record.accept, record.release, record.reject)[index % 3]()
                await consumer.commit()
                again = await take_all(consumer, 10)
                assert again == dict.fromkeys(range(1, 30, 3), 2)
                held[-1].accept()  # type: ignore[attr-defined]
                await consumer.commit()
                assert await consumer.take(1.0) is None
                metrics = consumer.metrics
            assert (metrics.accepted, metrics.released, metrics.rejected) == (20, 10, 10)
            assert (metrics.acquired, metrics.redelivered, metrics.refused, metrics.held) == (40, 10, 0, 0)

    asyncio.run(run())


def test_an_acknowledgement_after_the_lock_is_refused_and_raised(cluster: "Lab") -> None:
    async def run() -> None:
        async with stage(cluster.bootstrap) as on:
            topic, group = await prepare(on, 3)
            async with share_consumer(cluster.bootstrap, group=group, topics=[topic], timeout=PATIENCE) as consumer:
                await take_all(consumer, 3)
                late = list(held[-1])  # type: ignore[call-overload]
                assert late[0].batch.lock_timeout == 3.0
                async with share_consumer(cluster.bootstrap, group=group, topics=[topic], timeout=PATIENCE) as other:
                    assert await take_all(other, 3) == {0: 2, 1: 2, 2: 2}
                    # As if the results of a commit came just before the pump's next turn.
                    after, consumer._pump._after = consumer._pump._after, consumer._changed.set
                    late[0].accept()
                    with pytest.raises(AcknowledgeError, match=rf"{topic}-0 offset 0: accept didn't count") as raised:
                        await consumer.commit()
                    assert raised.value.code == INVALID_RECORD_STATE
                    consumer._pump._after = after
                    held[-1].accept()  # type: ignore[attr-defined]
                    await other.commit()

    asyncio.run(run())


def test_records_that_the_application_holds_stay_locked_with_renewal(cluster: "Lab") -> None:
    """Held for more than twice the lock time."""

    async def run() -> None:
        async with stage(cluster.bootstrap) as on:
            topic, group = await prepare(on, 5)
            async with share_consumer(
                cluster.bootstrap, group=group, topics=[topic], timeout=PATIENCE, renew=True
            ) as consumer:
                await take_all(consumer, 5)
                batch = held[-1]
                assert await consumer.take(7.0) is None
                batch.accept()  # type: ignore[attr-defined]
                await consumer.commit()
                assert consumer.metrics.renewed >= 10 and consumer.metrics.accepted == 5
                assert consumer.metrics.acquired == 5

    asyncio.run(run())


def test_record_limit_acquires_no_more_than_was_asked_for(cluster: "Lab") -> None:
    async def run() -> None:
        async with stage(cluster.bootstrap) as on:
            topic, group = await prepare(on, 20)
            options = {"max_records": 3, "timeout": PATIENCE}
            async with share_consumer(
                cluster.bootstrap, group=group, topics=[topic], acquire_mode="record_limit", **options
            ) as consumer:
                batch = await consumer.take(PATIENCE)
                assert batch is not None and len(batch) == 3 and consumer.metrics.acquired == 3
                batch.accept()
            async with share_consumer(cluster.bootstrap, group=group, topics=[topic], **options) as consumer:
                batch = await consumer.take(PATIENCE)
                assert batch is not None and len(batch) == 17, "whole batches of the log"

    asyncio.run(run())


@pytest.mark.parametrize(("options", "fetches"), [({}, 3), ({"read_ahead": 0}, 2)])
def test_a_quick_application_has_the_next_fetch_under_way_while_it_works(
    cluster: "Lab", options: dict[str, int], fetches: int
) -> None:
    async def run() -> None:
        async with stage(cluster.bootstrap) as on:
            topic, group = await prepare(on, 3_000, share_record_lock_duration_ms="60000")
            async with share_consumer(
                cluster.bootstrap, group=group, topics=[topic], timeout=PATIENCE, **options
            ) as consumer:
                first = await consumer.take(PATIENCE)
                assert first is not None and (first.lock_timeout, consumer.metrics.fetches) == (60.0, 1)
                first.accept()
                second = await consumer.take(PATIENCE)
                assert second is not None and consumer.metrics.fetches == fetches
                second.accept()

    asyncio.run(run())


def test_waiting_costs_nothing(cluster: "Lab") -> None:
    """The pump has a turn when something happens, or once a second."""

    async def run() -> None:
        async with stage(cluster.bootstrap) as on:
            topic, group = await prepare(on, 0)
            async with share_consumer(cluster.bootstrap, group=group, topics=[topic], timeout=PATIENCE) as consumer:
                turns, turn = 0, consumer._pump.turn

                def counted() -> float:
                    nonlocal turns
                    turns += 1
                    return turn()

                consumer._pump.turn = counted  # type: ignore[method-assign]
                begun = time.monotonic()
                assert await consumer.take(3.0) is None
                metrics = consumer.metrics
                requests = metrics.fetches + metrics.heartbeats + metrics.acknowledges
                assert turns < 20 + 10 * requests + 5 * (time.monotonic() - begun)

    asyncio.run(run())


def test_the_plain_consumer_accepts_implicitly_what_was_asked_past(cluster: "Lab") -> None:
    async def prepared() -> tuple[str, str]:
        async with stage(cluster.bootstrap) as on:
            return await prepare(on, 40)

    topic, group = asyncio.run(prepared())
    with plain_share_consumer(
        cluster.bootstrap, group=group, topics=topic, acknowledgement_mode="implicit", timeout=PATIENCE
    ) as consumer:
        values = []
        for record in consumer:
            values.append(record.value)
            if len(values) == 25:
                break
    assert values == [b"value %d" % number for number in range(25)]
    with plain_share_consumer(cluster.bootstrap, group=group, topics=topic, timeout=PATIENCE) as consumer:
        batch = consumer.take(PATIENCE)
        assert batch is not None
        # The record that the loop ended with was not asked past.
        assert [(record.offset, record.delivery_count) for record in batch][:2] == [(24, 2), (25, 2)]
        batch.accept()
        consumer.commit()
        assert consumer.metrics.accepted == 16


def test_transaction_markers_are_acknowledged_as_gaps(cluster: "Lab", tmp_path: Path) -> None:
    async def run() -> None:
        async with stage(cluster.bootstrap) as on:
            topic, group = await prepare(on, 0)
            options = {"role": "transact", "topic": topic, "count": "5", "kafka.bootstrap.servers": cluster.bootstrap}
            options["kafka.transactional.id"] = f"{topic}-transactor"
            program = java("Client", "transactor", tmp_path, options)
            await asyncio.to_thread(program.finish)
            async with share_consumer(cluster.bootstrap, group=group, topics=[topic], timeout=PATIENCE) as consumer:
                offsets = 0
                while offsets == 0 or consumer.metrics.gaps < 2:
                    batch = await consumer.take(PATIENCE)
                    assert batch is not None
                    offsets += len(batch)
                    batch.accept()
                    await consumer.commit()
                assert consumer.metrics.accepted == offsets and consumer.metrics.unreadable == 0
            view = await describe_share_group(on.cluster, group)
            assert view.partitions[0].lag == 0

    asyncio.run(run())


def test_a_member_that_leaves_gives_its_records_to_others_at_once(cluster: "Lab") -> None:
    async def run() -> None:
        async with stage(cluster.bootstrap) as on:
            topic, group = await prepare(on, 10)
            async with share_consumer(cluster.bootstrap, group=group, topics=[topic], timeout=PATIENCE) as consumer:
                await take_all(consumer, 10)
            assert (await describe_share_group(on.cluster, group)).state == "Empty"
            async with share_consumer(cluster.bootstrap, group=group, topics=[topic], timeout=PATIENCE) as consumer:
                assert set((await take_all(consumer, 10)).values()) == {2}
            with pytest.raises(UsageError, match="the consumer is closed"):
                await consumer.take()
            with pytest.raises(UsageError, match="the consumer is closed"):
                held[-1].accept()  # type: ignore[attr-defined]

    asyncio.run(run())


def test_a_topic_that_is_created_later_is_consumed(cluster: "Lab") -> None:
    async def run() -> None:
        async with stage(cluster.bootstrap) as on:
            topic, group = fresh()
            await on.group(group)
            async with share_consumer(cluster.bootstrap, group=group, topics=[topic], timeout=PATIENCE) as consumer:
                assert await consumer.take(0.5) is None
                await on.topic(topic)
                await on.produce(topic, [b"late"])
                assert await take_all(consumer, 1) == {0: 1}

    asyncio.run(run())


def test_an_error_in_the_block_comes_out_as_it_is(cluster: "Lab") -> None:
    async def run() -> None:
        topic, group = fresh()
        async with share_consumer(cluster.bootstrap, group=group, topics=[topic], timeout=PATIENCE):
            raise ValueError("of the application")

    with pytest.raises(ValueError, match="of the application"):
        asyncio.run(run())


def test_a_function_that_fails_ends_the_consumer_and_each_call_says_so(cluster: "Lab") -> None:
    def fail(part: Refused) -> None:
        raise ValueError(part.reason)

    async def run() -> None:
        async with stage(cluster.bootstrap) as on:
            topic, group = await prepare(on, 3)
            async with share_consumer(
                cluster.bootstrap, group=group, topics=[topic], timeout=PATIENCE, on_refused=fail
            ) as consumer:
                batch = await consumer.take(PATIENCE)
                assert batch is not None
                # Nobody holds it.
                consumer._member.acknowledge(consumer._loop.time(), batch.share_partition, 7, 7, 1)
                for _ in range(2):
                    with pytest.raises(KafkascopeError, match="the consumer ended: ValueError"):
                        await consumer.take(PATIENCE)

    asyncio.run(run())


def test_a_group_of_another_type_is_named_as_such(cluster: "Lab") -> None:
    async def run() -> None:
        topic, group = fresh()
        async with stage(cluster.bootstrap) as on:
            await on.topic(topic)
            value = {"groupId": group, "memberId": str(uuid4()), "memberEpoch": 0, "rebalanceTimeoutMs": 60_000}
            value |= {"subscribedTopicNames": [topic], "topicPartitions": []}
            answer = await on.cluster.call("ConsumerGroupHeartbeat", value)
            assert answer.value["errorCode"] == 0
            async with share_consumer(cluster.bootstrap, group=group, topics=[topic]):
                pass

    with pytest.raises(RefusedError, match="isn't a share group"):
        asyncio.run(run())


def test_brokers_without_share_groups_are_named_with_what_to_switch_on(cluster_39: "Lab") -> None:
    async def run() -> None:
        async with share_consumer(cluster_39.bootstrap, group="g", topics=["t"]):
            pass

    with pytest.raises(NotFoundError, match=r"has no share groups: they need Kafka 4\.1 .* share\.version"):
        asyncio.run(run())


def test_nobody_there_is_one_error() -> None:
    async def run() -> None:
        async with share_consumer("127.0.0.1:1", group="g", topics=["t"]):
            pass

    with pytest.raises(ReachError, match="connection refused"):
        asyncio.run(run())


@pytest.mark.heavy
def test_a_broker_that_is_killed_and_comes_back_loses_nothing_and_share_groups_can_be_switched_off() -> None:
    """On a cluster of its own: SIGKILL with records in hand, a restart, and then the feature at level 0."""
    from lab.cluster import Cluster

    async def run(lab: Cluster) -> None:
        async with stage(lab.bootstrap) as on:
            topic, group = await prepare(on, 100)
            notes: list[Refused] = []
            async with share_consumer(
                lab.bootstrap, group=group, topics=[topic], timeout=PATIENCE, on_refused=notes.append
            ) as consumer:
                assert len(await take_all(consumer, 100)) == 100
                batch = list(held[-1])  # type: ignore[call-overload]
                for record in batch[:10]:
                    record.accept()
                await consumer.commit()
                await asyncio.to_thread(lab.kill, 1)
                for record in batch[10:20]:
                    record.accept()
                await asyncio.to_thread(lab.start, 1)
                await asyncio.to_thread(lab.wait_until_ready)
                deadline = time.monotonic() + PATIENCE
                while consumer.metrics.accepted < 100 and time.monotonic() < deadline:
                    taken = await consumer.take(1.0)
                    if taken is not None:
                        taken.accept()
                        await consumer.commit(PATIENCE)
                # Those of the lost connection were refused, and were delivered again.
                assert sum(part.records for part in notes) >= 10
                assert consumer.metrics.accepted == 100
                assert await consumer.take(1.0) is None
        async with connect(lab.bootstrap, timeout=PATIENCE) as cluster:
            update = {"feature": "share.version", "maxVersionLevel": 0, "upgradeType": 3}
            answer = await cluster.call("UpdateFeatures", {"timeoutMs": 30_000, "featureUpdates": [update]})
            assert answer.value["errorCode"] == 0, answer.value
        with pytest.raises(RefusedError, match=r"switched off in this cluster: .*--feature share\.version=1"):
            async with share_consumer(lab.bootstrap, group=group, topics=[topic], timeout=PATIENCE):
                pass
        flags = ("--share-group", group, "--accept", "--timeout", f"{PATIENCE:g}")
        done = await asyncio.to_thread(process, "consume", lab.bootstrap, topic, *flags)
        text = done.stderr.decode()
        assert done.returncode == 1 and "UNSUPPORTED_VERSION (35)" in text and is_one_line_error(text)
        assert "share groups are switched off in this cluster" in text and "--feature share.version=1" in text

    with Cluster() as lab:
        asyncio.run(run(lab))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_records": 0}, "max_records is 0"),
        ({"max_records": True}, "max_records is True"),
        ({"max_bytes": 2**31}, "max_bytes is"),
        ({"acquire_mode": "all"}, "there are batch_optimized and record_limit"),
        ({"acknowledgement_mode": "maybe"}, "there are explicit and implicit"),
        ({"max_wait": -1.0}, "max_wait is -1.0"),
        ({"group": ""}, "a group is a name"),
        ({"topics": []}, "no topic given"),
        ({"topics": [7]}, "a topic is a name, not 7"),
    ],
)
def test_options_that_no_broker_takes_are_refused_before_connecting(options: dict[str, object], says: str) -> None:
    async def run() -> None:
        settings: dict[str, object] = {"group": "g", "topics": ["t"]} | options
        async with share_consumer("127.0.0.1:1", **settings):  # type: ignore[arg-type]
            pass

    with pytest.raises(UsageError, match=says):
        asyncio.run(run())
