"""Brokers that restart, die and cut connections: every call answers rightly or fails clearly within its deadline."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from kafkascope.client import Address, Cluster, Controller, Leader, Settings, connect
from kafkascope.client.settings import parse_addresses
from kafkascope.errors import ReachError
from tests.client.leftovers import run
from tests.client.test_cluster import QUORUM, create_topic, end_offset, new_name, produce

if TYPE_CHECKING:
    from lab.cluster import Cluster as Lab

Record = Callable[[str, object], None]
RESTARTS = 20 if os.environ.get("KAFKASCOPE_SOAK") else 3
DEADLINE = 5.0
# Beyond its deadline a call gets this much before the test says that it hangs: other work shares the cores.
GRACE = 20.0


class Callers:
    """Asks the same things again and again; counts right answers and clear failures, and fails on anything else."""

    def __init__(self, client: Cluster, topic: str, offsets: int) -> None:
        self._client = client
        self._topic = topic
        self._offsets = offsets
        self.right = 0
        self.failed: Counter[str] = Counter()
        self._group = new_name("group")

    async def forever(self) -> None:
        await asyncio.gather(*(self._repeat(ask) for ask in (self._listing, self._offset, self._commits, self._quorum)))

    async def all_right(self) -> None:
        """Waits until each of them has an answer, failing or not before."""
        async with asyncio.timeout(120):
            for ask in (self._listing, self._offset, self._commits, self._quorum):
                while True:
                    with suppress(ReachError):
                        await ask()
                        break

    async def more(self) -> None:
        """Waits until those who ask all the time have right answers again."""
        before = self.right
        async with asyncio.timeout(120):
            while self.right < before + 10:
                await asyncio.sleep(0.01)

    async def _repeat(self, ask: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                async with asyncio.timeout(DEADLINE + GRACE):
                    await ask()
                self.right += 1
            except ReachError as error:
                self.failed[str(error)] += 1

    async def _listing(self) -> None:
        answer = await self._client.call("Metadata", {"topics": [{"name": self._topic}]})
        assert answer.exact
        assert answer.value["topics"][0]["name"] == self._topic

    async def _offset(self) -> None:
        assert await end_offset(self._client, self._topic, 0) == self._offsets

    async def _commits(self) -> None:
        answer = await self._client.call("OffsetFetch", {"groups": [{"groupId": self._group, "topics": None}]})
        assert answer.value["groups"][0]["errorCode"] == 0

    async def _quorum(self) -> None:
        answer = await self._client.call("DescribeQuorum", QUORUM, to=Controller())
        assert answer.exact


@asynccontextmanager
async def calling(callers: Callers) -> AsyncIterator[None]:
    """Callers run while the block does."""
    task = asyncio.create_task(callers.forever())
    try:
        yield
        # what went wrong in a caller comes out here
        assert not task.done(), task.exception()
        assert not [text for text in callers.failed if "\n" in text]
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def test_a_broker_that_restarts_is_found_again(cluster: "Lab", record_property: Record) -> None:
    async def work() -> None:
        async with connect(cluster.bootstrap, timeout=DEADLINE) as client:
            topic = await create_topic(client)
            await produce(client, topic, 0, b"a", b"b", b"c")
            callers = Callers(client, topic, 3)
            await callers.all_right()
            for number in range(RESTARTS):
                async with calling(callers):
                    # in order and by SIGKILL in turn
                    await asyncio.to_thread(cluster.kill if number % 2 else cluster.stop, 1)
                    cluster.start(1)  # from here: it dies with the thread that started it
                    await asyncio.to_thread(cluster.wait_until_ready)
                    await callers.all_right()
                    await callers.more()
            record_property(
                "measured", f"client: {RESTARTS} restarts: {callers.right} answers, {callers.failed.total()} failures"
            )

    run(work(), kind="socket:")


def test_a_leader_that_dies_is_replaced(quorum_cluster: "Lab", record_property: Record) -> None:
    """One node that leads the partition is killed, then one that leads the quorum."""

    async def work() -> None:
        async with connect(quorum_cluster.bootstrap, timeout=DEADLINE) as client:
            topic = await create_topic(client, replicas=3)
            await produce(client, topic, 0, b"a", b"b")
            callers = Callers(client, topic, 2)
            await callers.all_right()
            leader = (await client.call("ListOffsets", {}, to=Leader(topic, 0))).node
            assert leader is not None
            quorum = quorum_cluster.leader()
            for dying in dict.fromkeys([leader, quorum]):
                async with calling(callers):
                    await asyncio.to_thread(quorum_cluster.kill, dying)
                    await callers.all_right()
                    answer = await client.call("ListOffsets", {}, to=Leader(topic, 0), timeout=60.0)
                    assert answer.node != dying
                    quorum_cluster.start(dying)
                    await asyncio.to_thread(quorum_cluster.wait_until_ready)
                    await callers.all_right()
            record_property(
                "measured", f"client: leaders killed: {callers.right} answers, {callers.failed.total()} failures"
            )

    run(work(), kind="socket:")


def test_another_node_answers_for_one_that_is_frozen(quorum_cluster: "Lab") -> None:
    """Its sockets are open and nobody is behind them."""

    async def work() -> None:
        addresses = parse_addresses(quorum_cluster.bootstrap)
        async with connect(Settings(addresses, timeout=8.0, connect_timeout=2.0)) as client:
            frozen = (await client.call("ListGroups")).address
            quorum_cluster.freeze(1 + addresses.index(frozen))
            try:
                answer = await client.call("Metadata", {"topics": []})
                assert answer.address != frozen
            finally:
                quorum_cluster.thaw(1 + addresses.index(frozen))
            # back in its place before the next test
            await asyncio.to_thread(quorum_cluster.wait_until_ready)

    run(work(), kind="socket:")


class Cutter:
    """A way to a broker. While `left` is a number, that many more bytes of answers pass; then the connection ends, and
    the next one is whole."""

    def __init__(self, to: Address) -> None:
        self._to = to
        self.left: int | None = None
        self.connections = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Address]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield Address(*server.sockets[0].getsockname()[:2])
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        incoming, out = await asyncio.open_connection(self._to.host, self._to.port)
        for work in (self._forth(reader, out), self._back(incoming, writer)):
            task = asyncio.create_task(work)
            self._tasks.add(task)

    async def _forth(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):
            while data := await source.read(65_536):
                sink.write(data)
        await _close(sink)

    async def _back(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):
            while data := await source.read(65_536):
                passing = data if self.left is None else data[: self.left]
                sink.write(passing)
                if self.left is not None:
                    self.left -= len(passing)
                    if self.left == 0:
                        self.left = None
                        break
        await _close(sink)


async def _close(sink: asyncio.StreamWriter) -> None:
    sink.close()
    with suppress(OSError, asyncio.CancelledError):
        await sink.wait_closed()


@asynccontextmanager
async def through_a_cutter(lab: "Lab") -> AsyncIterator[tuple[Cutter, Cluster]]:
    (address,) = parse_addresses(lab.bootstrap)
    cutter = Cutter(address)
    async with (
        cutter.listening() as way,
        connect(Settings((address,), resolve=((address, way),), timeout=60.0)) as client,
    ):
        await client.brokers()
        yield cutter, client


@pytest.mark.parametrize("passing", [0, 1, 3, 4, 5, 8, 9, 20])
def test_a_connection_cut_in_the_middle_of_an_answer_is_made_again(cluster: "Lab", passing: int) -> None:
    async def work() -> None:
        async with through_a_cutter(cluster) as (cutter, client):
            topic = await create_topic(client)
            cutter.left = passing
            answer = await client.call("Metadata", {"topics": [{"name": topic}]})
            assert answer.exact
            assert [row["name"] for row in answer.value["topics"]] == [topic]
            assert cutter.connections == 2

    run(work())


def test_all_calls_on_a_connection_that_is_cut_are_asked_again(cluster: "Lab") -> None:
    async def work() -> None:
        async with through_a_cutter(cluster) as (cutter, client):
            names = [await create_topic(client) for _ in range(5)]
            cutter.left = 200
            answers = await asyncio.gather(*(client.call("Metadata", {"topics": [{"name": name}]}) for name in names))
            assert [answer.value["topics"][0]["name"] for answer in answers] == names
            assert cutter.connections == 2

    run(work())


def test_a_change_whose_answer_is_cut_off_is_told_as_unknown_and_not_repeated(cluster: "Lab") -> None:
    async def work() -> None:
        async with through_a_cutter(cluster) as (cutter, client):
            name = new_name("topic")
            request = {"topics": [{"name": name, "numPartitions": 1, "replicationFactor": 1}], "timeoutMs": 30_000}
            cutter.left = 6
            with pytest.raises(ReachError, match=r"\(2 of \d+ bytes\); the request may have been carried out"):
                await client.call("CreateTopics", request)
            assert cutter.connections == 1
            assert await client.topic_id(name)

    run(work())
