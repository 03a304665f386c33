"""Runs one query's member of the share group in a running event loop: it collects the records of the next batch,
and goes on with heartbeats, renewals and acknowledgements while Spark is busy."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

from kafkascope.client.cluster import Cluster, connect
from kafkascope.client.consumer.options import ConsumerOptions
from kafkascope.client.consumer.pump import Pump
from kafkascope.client.consumer.refusals import problem_error, share_groups_missing
from kafkascope.client.routing import uuid_key
from kafkascope.client.share.member import ShareMember
from kafkascope.client.share.membership import Membership
from kafkascope.client.share.values import FetchLimits, SharePartition
from kafkascope.errors import KafkascopeError, ReachError, UsageError
from kafkascope.pipeline.share.available import Available
from kafkascope.pipeline.share.batch_offset import BatchOffset, Sets
from kafkascope.pipeline.share.batches import Batches
from kafkascope.pipeline.share.dead_letters import write_dead_letters
from kafkascope.pipeline.share.group_look import GroupLook, check_topics, target_offsets
from kafkascope.pipeline.share.options import ShareOptions
from kafkascope.pipeline.share.outcomes import prepare_folder, read_outcomes

_FETCH_KEY = 78
# Without renewal a batch is to be done in this part of the lock.
_USABLE = 0.5
# The first batch without renewal; later ones as the sink's pace allows.
_FIRST_RECORDS = 500
_MOST_RECORDS = 1_000_000_000
# Bytes that a broker may send at once.
_FETCH_BYTES = 16_777_216
# A fetch waits so long for records at most: acknowledgements and renewals wait with it.
_LONGEST_FETCH = 0.25
_SHORTEST_WAIT = 0.05
# For the last acknowledgements before Spark stops the process.
_SETTLE_SECONDS = 10.0


class Acquirer:
    """Joins the group with the first call of `next_batch`."""

    def __init__(self, options: ShareOptions, on_note: Callable[[str], None]) -> None:
        self.options = options
        self.look = GroupLook()
        self._on_note = on_note
        self._available: Available | None = None
        self._stack = AsyncExitStack()
        self._cluster: Cluster | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._changed = asyncio.Event()
        self._errors: list[KafkascopeError] = []
        self._batches: Batches | None = None
        # Seconds that a record of a batch takes from here to its commit, and when the open batch left.
        self._pace: float | None = None
        self._left_at = 0.0

    async def only_available(self) -> None:
        """Batches have what the topics have now, and nothing later."""
        cluster, _ = await self._connected()
        self._available = Available(await target_offsets(cluster, self.options), self.look)

    async def next_batch(self, start: BatchOffset, limit: int) -> BatchOffset | None:
        """The batch after `start`, which Spark has committed; None if no record came in the time to wait. Asked for the
        same batch again, it's the same."""
        batches = self._batches or await self._open(start)
        await self.commit(start)
        if batches.open is not None:
            return batches.open
        limit = min(limit, self._most_records(batches))
        batch = None
        if await self._collect(batches, limit):
            batch = batches.make(start, limit, self._now(), time.time())
        if batch is None:
            await self._settle()
        self._left_at = self._now()
        return batch

    async def commit(self, offset: BatchOffset) -> None:
        """Spark has committed this batch. What the application has released or rejected of it is in a file, and dead
        letters are in their table, before anything is acknowledged."""
        batches = self._batches
        if batches is None or offset.batch <= batches.committed:
            return
        if batches.open is not None:
            self._pace = (self._now() - self._left_at) / max(batches.open.size, 1)
        options = self.options
        release: Sets = {}
        reject: Sets = {}
        if options.outcomes is not None:
            release, reject = await asyncio.to_thread(read_outcomes, options.outcomes, offset)
        if offset.dead:
            await asyncio.to_thread(write_dead_letters, offset, options)
        batches.commit(offset, self._now(), release, reject)
        self._pump.wake()

    def metrics(self) -> dict[str, Any]:
        """For the progress of the query; docs/share-source.md describes each."""
        if self._batches is None:
            return {}
        counts, own = self._batches.member.counts, self._batches.counts
        return {
            "acquired": counts.acquired,
            "redelivered": counts.redelivered,
            "handedOut": own.handed_out,
            "accepted": counts.accepted,
            "released": counts.released,
            "rejected": counts.rejected,
            "renewed": counts.renewed,
            "expired": own.expired,
            "knownAgain": own.known_again,
            "held": self._batches.member.held_offsets,
            "ledger": self._batches.ledger.offsets,
            "renewal": self._batches.renews,
            "lag": self.look.lag,
        }

    async def close(self) -> None:
        """Sends what is acknowledged, releases the rest, and leaves the group, if brokers respond."""
        if self._batches is not None:
            self._batches.member.close()
            self._pump.fetch, self._pump.flush = False, True
            self._pump.wake()
            seconds = 0.0 if self._pump.silent_since is not None else min(self._pump.timeout, _SETTLE_SECONDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await asyncio.wait([self._tasks[0]])
        await self._abandon()

    async def _connected(self) -> tuple[Cluster, dict[UUID, str]]:
        """With the names of the topics."""
        try:
            if self._cluster is None:
                self._cluster = await self._stack.enter_async_context(
                    connect(self.options.settings(), on_note=self._on_note)
                )
            return self._cluster, await check_topics(self._cluster, self.options)
        except BaseException:
            await self._abandon()
            raise

    async def _open(self, start: BatchOffset) -> Batches:
        """Joined, or an error that says why not."""
        cluster, names = await self._connected()
        try:
            renews = await self._check_versions(cluster)
            membership = Membership(self.options.group, start.member, self.options.topics)
            limits = FetchLimits(max_bytes=_FETCH_BYTES)
            self._batches = batches = Batches(ShareMember(membership, limits), start, renews=renews)
            batches.member.names |= names
            batches.most_deliveries = self.options.max_delivery_count
            if self.options.outcomes is not None:
                await asyncio.to_thread(prepare_folder, self.options.outcomes)
            if self._available is not None:
                batches.targets = self._available.targets
            self._pump = Pump(cluster, batches.member, batches.before_poll, self._after_poll)
            self._tasks.append(asyncio.create_task(self._run(self._pump)))
            await self._joined(batches)
            self._tasks.append(asyncio.create_task(self._look_on(batches, cluster)))
        except BaseException:
            self._batches = None
            await self._abandon()
            raise
        return batches

    async def _check_versions(self, cluster: Cluster) -> bool:
        """Whether locks can be renewed."""
        versions = await cluster.versions()
        missing = share_groups_missing(versions, cluster)
        if missing is not None:
            raise missing
        can = versions[_FETCH_KEY][1] >= 2
        if self.options.renew is True and not can:
            raise UsageError(f"{cluster.settings.bootstrap[0]}: renewal needs Kafka 4.2 or newer; leave renew out")
        renews = can and self.options.renew is not False
        if not renews:
            self._on_note("locks aren't renewed: batches are kept so small that they take half a lock")
        return renews

    async def _joined(self, batches: Batches) -> None:
        seconds = self._pump.timeout
        deadline = self._now() + seconds
        while not batches.member.membership.joined:
            self._raise_errors()
            if self._now() > deadline:
                reason = self._pump.last_error or f"no response within {seconds:g} s"
                raise ReachError(f"joining share group {self.options.group}: {reason}")
            await self._wait(deadline)

    async def _abandon(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._tasks.clear()
        self._cluster = None
        await self._stack.aclose()

    async def _run(self, pump: Pump) -> None:
        try:
            await pump.run()
        except KafkascopeError as error:
            self._errors.append(error)
        except Exception as error:
            self._errors.append(KafkascopeError(f"the member of the share group ended: {error!r}"))
            raise
        finally:
            self._changed.set()

    async def _look_on(self, batches: Batches, cluster: Cluster) -> None:
        """Keeps the lag and prunes the ledger."""
        while True:
            before = batches.committed
            await self.look.look(cluster, self.options)
            # A batch that was committed since isn't part of what is done.
            done = self.look.done if before == batches.committed else set()
            batches.prune(self.look.starts, done)
            self._changed.set()
            await self.look.pause()

    async def _collect(self, batches: Batches, limit: int) -> bool:
        """Fetches until there is a batch of that size, brokers have no more, or the time to wait is over."""
        member, begun = batches.member, self._now()
        fresh_since: float | None = None
        wait = min(self.options.max_wait / 2, _LONGEST_FETCH)
        self._pump.fetch = True
        try:
            while True:
                self._raise_errors()
                now, fresh = self._now(), batches.fresh_offsets(self._now())
                if fresh >= limit:
                    return True
                # With records at hand brokers are asked for what they have at once.
                self._set_limits(batches, 0.0 if fresh else wait, limit - fresh)
                if fresh:
                    fresh_since = now if fresh_since is None else fresh_since
                    # A broker that doesn't respond isn't waited for.
                    if member.exhausted or now >= fresh_since + self._collecting_seconds(batches):
                        return True
                elif self._is_over(member, begun, now):
                    return False
                self._pump.wake()
                await self._wait(now + wait)
        finally:
            self._pump.fetch = False

    def _is_over(self, member: ShareMember, begun: float, now: float) -> bool:
        """For a member without records."""
        if self._available is not None:
            return self._available.is_over(member, now)
        return now >= begun + self.options.max_wait

    def _collecting_seconds(self, batches: Batches) -> float:
        """For one batch. Without renewal the locks of its first records count down."""
        wait = self.options.max_wait
        return wait if batches.renews else min(wait, batches.lock * _USABLE / 4)

    @staticmethod
    def _set_limits(batches: Batches, wait: float, records: int) -> None:
        """Without renewal nothing is locked that has to wait for a later batch, as far as record batches allow: its
        locks would end, and brokers archive what that has happened to a few times."""
        member = batches.member
        if not batches.renews:
            records = -(-records // max(len(member.sessions), 1))
        if member.limits.max_wait != wait:
            for session in member.sessions.values():
                session.empty_fetches = 0
        member.limits = replace(member.limits, max_wait=wait, max_records=records)

    async def _settle(self) -> None:
        """Waits for the results of acknowledgements: Spark may stop the process after this."""
        assert self._batches is not None
        deadline = self._now() + _SETTLE_SECONDS
        self._pump.flush = True
        try:
            while self._batches.member.unsettled and self._now() < deadline:
                self._raise_errors()
                self._pump.wake()
                await self._wait(deadline)
        finally:
            self._pump.flush = False

    def _after_poll(self) -> None:
        batches = self._batches
        assert batches is not None
        results = batches.take_results()
        # A short lock has several chances of its renewal.
        self._pump.longest_wait = min(self._pump.longest_wait, max(batches.lock / 8, _SHORTEST_WAIT))
        if self._available is not None:
            self._available.confirm(results)
        problems, batches.member.problems = batches.member.problems, []
        for problem in problems:
            names = ConsumerOptions(self.options.group, self.options.topics)
            error = problem_error(problem, names, self._pump.cluster, self._topic)
            if problem.severe:
                self._errors.append(error)
            else:
                self._on_note(str(error))
        self._changed.set()

    def _most_records(self, batches: Batches) -> int:
        """Without renewal: what the sink has shown to write in half a lock."""
        if batches.renews:
            return _MOST_RECORDS
        if self._pace is None:
            return _FIRST_RECORDS
        return max(1, min(_MOST_RECORDS, int(batches.lock * _USABLE / max(self._pace, 1e-9))))

    def _raise_errors(self) -> None:
        if self._errors:
            raise self._errors.pop(0)
        silent_since, seconds = self._pump.silent_since, self._pump.timeout
        if silent_since is not None and self._now() >= silent_since + seconds:
            group, reason = self.options.group, self._pump.last_error
            raise ReachError(f"share group {group}: no broker has responded for {seconds:g} s: {reason}")

    async def _wait(self, until: float) -> None:
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self._changed.wait()

    def _topic(self, partition: SharePartition) -> str:
        assert self._batches is not None
        return self._batches.member.names.get(partition.topic_id) or uuid_key(partition.topic_id)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
