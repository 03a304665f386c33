"""Carries requests of a share group member to brokers and their responses back, in tasks of its own, until the member
has left."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import get_ident
from typing import TYPE_CHECKING, Any

from kafkascope.client.share.member import METADATA_API, Send, ShareMember
from kafkascope.client.share.membership import API as HEARTBEAT
from kafkascope.client.share.requests import FETCH_API, for_version, needs_version_2
from kafkascope.client.targets import AnyBroker, Coordinator
from kafkascope.errors import KafkascopeError, ReachError, RefusedError, UsageError

if TYPE_CHECKING:
    from kafkascope.client.answer import Answer
    from kafkascope.client.cluster import Cluster

# So that locks that end are noticed.
_LONGEST_WAIT = 1.0


class Pump:
    """`before` is called before each look at what to send, `after` when something came back, and not otherwise: whoever
    waits for it wakes the pump in turn. Both may take some time, as the requests wait for them."""

    def __init__(
        self, cluster: "Cluster", member: ShareMember, before: Callable[[float], None], after: Callable[[], None]
    ) -> None:
        self.cluster, self._member = cluster, member
        self._before, self._after = before, after
        self._loop, self._thread = asyncio.get_running_loop(), get_ident()
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        # Whether a response, or its loss, has come since `after` was called.
        self._news = False
        self.fetch = False
        self.flush = False
        # Seconds between two calls of `before` at most.
        self.longest_wait = _LONGEST_WAIT
        # Why the last request got no response; None after one that did.
        self.last_error: KafkascopeError | None = None
        # Since when no broker has responded to anything; None if one has.
        self.silent_since: float | None = None
        # What one of the brokers is too old for, while others aren't.
        self.too_old: UsageError | None = None
        self.requests = 0

    @property
    def timeout(self) -> float:
        """Seconds for one call."""
        return self.cluster.settings.timeout

    def wake(self) -> None:
        self._wake.set()

    def wake_from_anywhere(self) -> None:
        """From any thread; another one pays a system call."""
        if get_ident() == self._thread:
            self._wake.set()
        else:
            self._loop.call_soon_threadsafe(self._wake.set)

    def turn(self) -> float:
        """Sends what is due; returns the time."""
        now = self._loop.time()
        self._before(now)
        for send in self._member.poll(now, fetch=self.fetch, flush=self.flush):
            task = self._loop.create_task(self._exchange(send), name=f"kafkascope sends {send.api}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return now

    async def run(self) -> None:
        member = self._member
        try:
            while True:
                self._wake.clear()
                now = self.turn()
                if self._news or member.results or member.problems:
                    self._news = False
                    self._after()
                if member.closed:
                    return
                delay = min(member.next_at(now, fetch=self.fetch) - now, self.longest_wait)
                with suppress(TimeoutError):
                    async with asyncio.timeout(delay):
                        await self._wake.wait()
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    async def _exchange(self, send: Send) -> None:
        self.requests += 1
        try:
            answer = await self._call(send)
        except RefusedError as error:
            # By the broker that was asked for the coordinator: the same code is the coordinator's to give.
            self.last_error, self.silent_since = error, None
            if send.api == HEARTBEAT:
                self._member.received(send, {"errorCode": error.code, "memberEpoch": 0}, self._loop.time())
            else:
                self._member.lost(send, self._loop.time())
        except UsageError as error:
            self.too_old = error
            self._member.lost(send, self._loop.time())
        except KafkascopeError as error:
            # Also a response that can't be decoded: whatever it was, the member goes on without it.
            self.last_error = error
            if self.silent_since is None and isinstance(error, ReachError):
                self.silent_since = self._loop.time()
            self._member.lost(send, self._loop.time())
        except BaseException:
            self._member.lost(send, self._loop.time())
            raise
        else:
            self.last_error = self.silent_since = None
            self._member.received(send, answer.value, self._loop.time())
        finally:
            self._news = True
            self._wake.set()

    async def _call(self, send: Send) -> "Answer":
        if send.api == HEARTBEAT:
            group = Coordinator("group", send.value["groupId"])
            return await self.cluster.call(HEARTBEAT, send.value, to=group)
        if send.api == METADATA_API:
            return await self.cluster.call(METADATA_API, send.value, to=AnyBroker())
        assert send.node is not None
        wait = send.value["maxWaitMs"] / 1000 if send.api == FETCH_API else 0.0

        def request(version: int) -> Mapping[str, Any]:
            if version < 2 and needs_version_2(send.api, send.value):
                raise UsageError(f"node {send.node} serves {send.api} v{version}; {NEEDS_42}")
            return for_version(send.api, send.value, version)

        timeout = self.cluster.settings.timeout + wait
        return await self.cluster.call_node(send.api, request, send.node, timeout=timeout)


NEEDS_42 = "renewal and acquire_mode record_limit need Kafka 4.2 or newer"
