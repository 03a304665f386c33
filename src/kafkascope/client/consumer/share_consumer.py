"""The share consumer: records of topics, as a member of a share group, for asyncio. What it holds when its block ends
is released, and it leaves the group."""

import asyncio
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID
from weakref import WeakSet

from kafkascope.client.cluster import Cluster, connect
from kafkascope.client.consumer.batch import ShareBatch, ShareRecord
from kafkascope.client.consumer.options import ConsumerOptions, check_options
from kafkascope.client.consumer.pump import NEEDS_42, Pump
from kafkascope.client.consumer.refusals import problem_error, share_groups_missing
from kafkascope.client.consumer.results import Refused, acknowledge_error, refused
from kafkascope.client.routing import uuid_key
from kafkascope.client.settings import Address, Settings
from kafkascope.client.share.member import ShareMember
from kafkascope.client.share.membership import Membership
from kafkascope.client.share.records import find_records
from kafkascope.client.share.values import (
    Acknowledge,
    AcknowledgeResult,
    Acquired,
    AcquireMode,
    Delivery,
    DeliveryId,
    SharePartition,
)
from kafkascope.client.transport.deadline import after
from kafkascope.errors import KafkascopeError, ReachError, UsageError

_FETCH_KEY = 78
# A lock is renewed when less than this part of its time is left.
_RENEW_AT = 0.5
# An application is quick that asks again within this part of the lock time of its last records.
_QUICK = 0.1
# Refused acknowledgements that wait to be raised.
_MOST_REFUSED = 1_000


@dataclass(frozen=True, slots=True)
class ShareMetrics:
    """Counts since the start, of records unless the name is about requests (`fetches`, `acknowledges`, `heartbeats`),
    joins or sessions. docs/share-consumer.md describes each."""

    acquired: int
    redelivered: int
    delivered: int
    delivered_bytes: int
    buffered: int
    held: int
    accepted: int
    released: int
    rejected: int
    renewed: int
    refused: int
    unknown: int
    lost: int
    gaps: int
    unreadable: int
    ignored: int
    fetches: int
    acknowledges: int
    heartbeats: int
    joins: int
    sessions: int


@asynccontextmanager
async def share_consumer(
    settings: Settings | str | Address | Iterable[str | Address],
    *,
    group: str,
    topics: str | Iterable[str],
    **options: Any,
) -> AsyncIterator["ShareConsumer"]:
    """Joins the group within the timeout of the settings, or raises. `options` are fields of `ConsumerOptions`, and of
    the settings as `connect` takes them."""
    own = {name: options.pop(name) for name in list(options) if name in ConsumerOptions.__dataclass_fields__}
    checked = check_options(group, topics, own)
    async with connect(settings, on_note=checked.on_note, **options) as cluster:
        consumer = ShareConsumer(cluster, checked)
        await consumer._start()
        try:
            yield consumer
        except BaseException as error:
            try:
                await consumer.close()
            except KafkascopeError as second:
                error.add_note(f"and while the consumer closed: {second}")
            raise
        await consumer.close()


class ShareConsumer:
    """Made by `share_consumer`. Iterating it gives records, `batches()` what was acquired together."""

    def __init__(self, cluster: Cluster, options: ConsumerOptions) -> None:
        self.options = options
        self.group = options.group
        self.member_id = uuid_key(UUID(bytes=secrets.token_bytes(16)))
        self._cluster = cluster
        membership = Membership(options.group, self.member_id, options.topics, options.rack)
        self._member = ShareMember(membership, options.limits(1))
        self._pump = Pump(cluster, self._member, self._before_poll, self._after_poll)
        self._running: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._waiting = 0
        self._closed = self._renews = self._can_renew = False
        # Other threads append to these.
        self._listed: deque[ShareBatch] = deque()
        self._renewals: deque[tuple[ShareBatch, int, int]] = deque()
        self._live: WeakSet[ShareBatch] = WeakSet()
        # When the last records were handed out and how long their lock is; what is about to leave the buffer.
        self._handed_out: tuple[float, float] | None = None
        self._quick = self._hurries = False
        self._leaving = 0
        # Handed out last, for implicit acknowledgement.
        self._current: ShareBatch | None = None
        self._refused: list[Refused] = []
        self._error: KafkascopeError | None = None
        self._errors: list[KafkascopeError] = []
        self._delivered = self._delivered_bytes = self._unreadable = 0
        self._sessions: dict[int, int] = {}

    @property
    def assignment(self) -> dict[str, tuple[int, ...]]:
        """The partitions that the group gave to this member, by topic. Share groups give one to several members."""
        topics: dict[str, list[int]] = {}
        for partition in sorted(self._member.membership.assignment):
            topics.setdefault(self._topic(partition), []).append(partition.partition)
        return {topic: tuple(numbers) for topic, numbers in topics.items()}

    @property
    def member_epoch(self) -> int:
        return self._member.membership.epoch

    @property
    def metrics(self) -> ShareMetrics:
        counts, membership = self._member.counts, self._member.membership
        return ShareMetrics(
            counts.acquired, counts.redelivered, self._delivered, self._delivered_bytes, self._buffered(),
            self._member.held_offsets, counts.accepted, counts.released, counts.rejected, counts.renewed,
            counts.refused, counts.unknown, counts.lost, counts.gaps, self._unreadable, counts.ignored, counts.fetches,
            counts.acknowledges, membership.heartbeats, membership.joins, self._member.sessions_opened,
        )  # fmt: skip

    async def take(self, timeout: float | None = None) -> ShareBatch | None:
        """The next records of one partition; None if none came in `timeout` seconds. Raises what went wrong since the
        last call: AcknowledgeError, or RefusedError if the group or a topic is refused."""
        self._check_running()
        if self.options.implicit and self._current is not None:
            self._current.accept()
        self._current = None
        now = self._loop.time()
        deadline = None if timeout is None else now + timeout
        if self._handed_out is not None:
            at, lock = self._handed_out
            self._quick, self._handed_out = now - at < lock * _QUICK, None
        while True:
            self._raise_errors()
            while self._member.deliveries:
                if self._reads_ahead:
                    self._fetch_ahead()
                    # Its task sends the request now.
                    await asyncio.sleep(0)
                    if not self._member.deliveries:
                        break
                batch = self._batch(self._member.deliveries.popleft())
                if batch is not None:
                    self._pump.wake()
                    self._handed_out = self._loop.time(), batch.lock_timeout
                    if self.options.implicit:
                        self._current = batch
                    return batch
            self._waiting += 1
            self._pump.wake()
            try:
                self._changed.clear()
                async with asyncio.timeout_at(deadline):
                    await self._changed.wait()
            except TimeoutError:
                return None
            finally:
                self._waiting -= 1

    async def batches(self) -> AsyncIterator[ShareBatch]:
        while True:
            batch = await self.take()
            assert batch is not None
            yield batch

    async def __aiter__(self) -> AsyncIterator[ShareRecord]:
        async for batch in self.batches():
            implicit, self._current = self.options.implicit, None
            for record in batch:
                yield record
                if implicit and record.acknowledged is None:
                    record.accept()

    async def commit(self, timeout: float | None = None) -> None:
        """Sends acknowledgements at once and waits for their results; AcknowledgeError if some didn't count. With
        implicit acknowledgement, the last batch is accepted first."""
        self._check_running()
        if self._current is not None:
            self._current.accept()
            self._current = None
        deadline = after(self._cluster.settings.timeout if timeout is None else timeout)
        self._pump.flush = True
        try:
            while self._listed or self._renewals or self._member.unsettled:
                self._pump.wake()
                self._changed.clear()
                try:
                    async with asyncio.timeout_at(deadline.at):
                        await self._changed.wait()
                except TimeoutError:
                    raise ReachError(
                        f"acknowledgements of group {self.group}: no result within {deadline.seconds:g} s"
                    ) from None
        finally:
            self._pump.flush = False
        # The last results may have come while the pump hasn't had its turn yet.
        self._note_results()
        self._raise_errors()

    async def close(self) -> None:
        """Sends what is acknowledged, releases the rest, and leaves the group; within the timeout of the settings."""
        if self._closed:
            return
        self._current = None
        self._collect(self._loop.time())
        self._closed = True
        self._member.close()
        self._pump.fetch, self._pump.flush = False, True
        self._pump.wake()
        if self._running is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._cluster.settings.timeout):
                    await asyncio.shield(self._running)
            if not self._running.done():
                self._running.cancel()
                await asyncio.wait([self._running])
        self._note_results()
        if self._refused:
            raise acknowledge_error(self._take_refused())

    async def _start(self) -> None:
        """Joined, or an error that says why not."""
        await self._check_versions()
        self._running = asyncio.create_task(self._run(), name=f"kafkascope consumes for {self.group}")
        deadline = after(self._cluster.settings.timeout)
        while not self._member.membership.joined:
            try:
                self._raise_errors()
                self._changed.clear()
                async with asyncio.timeout_at(deadline.at):
                    await self._changed.wait()
            except TimeoutError:
                await self._abandon()
                reason = self._pump.last_error or f"no response within {deadline.seconds:g} s"
                raise ReachError(f"joining share group {self.group}: {reason}") from None
            except BaseException:
                await self._abandon()
                raise

    async def _abandon(self) -> None:
        assert self._running is not None
        self._closed = True
        self._running.cancel()
        await asyncio.wait([self._running])

    async def _run(self) -> None:
        try:
            await self._pump.run()
        except Exception as error:  # noqa: BLE001 (of the application's functions too)
            # For good: nothing is sent any more.
            self._error = KafkascopeError(f"the consumer ended: {error!r}")
            self._error.__cause__ = error
        finally:
            self._changed.set()

    async def _check_versions(self) -> None:
        versions = await self._cluster.versions()
        missing = share_groups_missing(versions, self._cluster)
        if missing is not None:
            raise missing
        self._can_renew = versions[_FETCH_KEY][1] >= 2
        if self.options.needs_version_2 and not self._can_renew:
            raise self._too_old()
        self._member.limits = self.options.limits(versions[_FETCH_KEY][1])
        self._renews = self._can_renew and self.options.renew is not False

    def _too_old(self) -> UsageError:
        return UsageError(f"{self._cluster.settings.bootstrap[0]}: {NEEDS_42}")

    def _before_poll(self, now: float) -> None:
        self._collect(now)
        if self._renews:
            self._renew_due(now)
        waited_for = self._waiting > 0 and not self._member.deliveries
        room = self._buffered() - self._leaving < (self.options.read_ahead or 0)
        self._pump.fetch = not self._closed and (waited_for or room or self._hurries)

    @property
    def _reads_ahead(self) -> bool:
        if self.options.read_ahead is not None:
            return self.options.read_ahead > 0
        # Whoever limits records wants no more of them locked.
        return self._quick and self._member.limits.mode != AcquireMode.RECORD_LIMIT

    def _fetch_ahead(self) -> None:
        """Fetches before the application works on the next records. Unless it was asked for, for what is there now:
        acknowledgements would wait for the response."""
        member, limits = self._member, self._member.limits
        self._leaving = member.deliveries[0].offsets
        if self.options.read_ahead is None and self._buffered() == self._leaving:
            self._hurries, member.limits = True, replace(limits, max_wait=0.0)
        self._pump.turn()
        self._leaving, self._hurries, member.limits = 0, False, limits

    def _after_poll(self) -> None:
        """What came back: whoever waits looks at it."""
        self._note_results()
        problems, self._member.problems = self._member.problems, []
        for problem in problems:
            error = problem_error(problem, self.options, self._cluster, self._topic)
            if problem.severe:
                self._errors.append(error)
            else:
                self._note(str(error))
        if self._member.membership.failed and self._error is None and self._errors:
            self._error = self._errors[-1]
        self._changed.set()

    def _note_results(self) -> None:
        results, self._member.results = self._member.results, []
        for result in results:
            if result.code != 0 and self._concerns_application(result):
                part = refused(result, self._topic(result.partition))
                if self.options.on_refused is not None:
                    self.options.on_refused(part)
                elif len(self._refused) < _MOST_REFUSED:
                    self._refused.append(part)

    def _concerns_application(self, result: AcknowledgeResult) -> bool:
        """Gaps are ours, and a renewal of ours that fails shows when the application acknowledges."""
        if result.type == Acknowledge.GAP:
            return False
        return not (result.type == Acknowledge.RENEW and self._renews)

    def _raise_errors(self) -> None:
        if self._pump.too_old is not None:
            raise self._pump.too_old
        if self._errors:
            raise self._errors.pop(0)
        if self._refused:
            raise acknowledge_error(self._take_refused())
        if self._error is not None:
            raise self._error

    def _take_refused(self) -> list[Refused]:
        parts, self._refused = self._refused, []
        return parts

    def _batch(self, delivery: Delivery) -> ShareBatch | None:
        """Its records that are still ours; None if there are none. Gaps and corrupt batches are acknowledged here."""
        now, partition = self._loop.time(), delivery.partition
        acquired = self._still_held(delivery, now)
        if not acquired:
            return None
        contents = find_records(delivery.data, acquired)
        for first, last, kind in contents.others:
            self._member.acknowledge(now, partition, first, last, kind, delivery.id)
            if kind != Acknowledge.GAP:
                self._unreadable += last - first + 1
        topic = self._topic(partition)
        for problem in contents.problems:
            self._note(f"{topic}-{partition.partition}: {problem}")
        if not contents.records:
            return None
        self._delivered += len(contents.records)
        self._delivered_bytes += len(delivery.data)
        batch = ShareBatch(
            self, topic, partition, delivery.id, contents.records, contents.delivery_counts, delivery.lock
        )  # fmt: skip
        self._live.add(batch)
        return batch

    def _still_held(self, delivery: Delivery, now: float) -> tuple[Acquired, ...]:
        """While it waited its lock may have ended, or its broker may have gone."""
        parts: list[Acquired] = []
        for first, last, count in delivery.acquired:
            for piece, until in self._member.held(delivery.partition, first, last, delivery.id):
                if until > now:
                    parts.append(Acquired(piece.first, piece.last, count))
        return tuple(parts)

    def _marked(self, batch: ShareBatch) -> None:
        """Called by a batch with its first new mark, maybe from another thread."""
        self._listed.append(batch)
        self._pump.wake_from_anywhere()

    def _renew(self, batch: ShareBatch, first: int, last: int) -> None:
        self._check_running()
        if not self._can_renew:
            raise self._too_old()
        self._renewals.append((batch, first, last))
        self._pump.wake_from_anywhere()

    def _collect(self, now: float) -> None:
        if self._listed or self._renewals:
            # There may be nothing to send and no result: a batch without open records.
            self._changed.set()
        while self._listed:
            batch = self._listed.popleft()
            for first, last, kind in batch._take_marks():
                self._member.acknowledge(now, batch.share_partition, first, last, kind, batch._delivery)
        while self._renewals:
            batch, first, last = self._renewals.popleft()
            self._renew_held(now, batch.share_partition, batch._delivery, first, last, float("inf"))

    def _renew_due(self, now: float) -> None:
        for batch in self._live:
            if batch.open:
                first, last = batch.records[0].offset, batch.records[-1].offset
                before = now + batch.lock_timeout * _RENEW_AT
                self._renew_held(now, batch.share_partition, batch._delivery, first, last, before)
        for delivery in self._member.deliveries:
            first, last = delivery.acquired[0].first, delivery.acquired[-1].last
            self._renew_held(now, delivery.partition, delivery.id, first, last, now + delivery.lock * _RENEW_AT)

    def _renew_held(
        self, now: float, partition: SharePartition, delivery: DeliveryId, first: int, last: int, before: float
    ) -> None:
        """Locks that end before that time. Those that have ended are the broker's."""
        for piece, until in list(self._member.held(partition, first, last, delivery)):
            if now < until < before:
                self._member.acknowledge(now, partition, piece.first, piece.last, Acknowledge.RENEW, delivery)

    def _lock_until(self, batch: ShareBatch, offset: int) -> float | None:
        """In seconds since the epoch."""
        lock = self._member.lock(batch.share_partition, offset, batch._delivery)
        return None if lock is None else time.time() + lock[1] - self._loop.time()

    def _buffered(self) -> int:
        return sum(delivery.offsets for delivery in self._member.deliveries)

    def _topic(self, partition: SharePartition) -> str:
        return self._member.names.get(partition.topic_id) or uuid_key(partition.topic_id)

    def _note(self, text: str) -> None:
        if self.options.on_note is not None:
            self.options.on_note(text)

    def _check_running(self) -> None:
        if self._closed:
            raise UsageError("the consumer is closed: its `with share_consumer(…)` block has ended")
