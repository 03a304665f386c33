"""A `Cluster` whose block has ended: every call is told so, and nothing is opened for it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kafkascope.client import Cluster, Node, connect
from kafkascope.codec.frame import DecodedFrame
from kafkascope.errors import UsageError
from tests.client.leftovers import run
from tests.client.servers import Peer, serving, silence
from tests.client.stage import FETCH, NO_ANSWER, Stage, handler_of, nothing_special, running

Late = Callable[[Cluster], Awaitable[Any]]


@pytest.mark.parametrize(
    "late",
    [
        lambda cluster: cluster.call("ListGroups"),
        lambda cluster: cluster.call("ListGroups", to=Node(1)),
        lambda cluster: cluster.versions(),
        lambda cluster: cluster.brokers(),
        lambda cluster: cluster.send_bytes(b"\0" * 12),
        lambda cluster: cluster.open(),
    ],
)
def test_a_call_after_the_block_is_wrong_use(late: Late) -> None:
    async def work() -> None:
        stage = Stage(nothing_special)
        async with serving(handler_of(stage, 1)) as address:
            stage.addresses[1] = address
            async with connect(address) as cluster:
                await cluster.call("ListGroups")
            with pytest.raises(UsageError, match="is closed"):
                await late(cluster)
            assert stage.connections[1] == 1

    run(work())


def test_a_call_under_way_when_the_block_ends_is_told_so() -> None:
    def script(_: int, request: DecodedFrame) -> dict[str, Any] | None:
        return NO_ANSWER if request.api == "Fetch" else None

    async def work() -> None:
        stage = Stage(script)
        async with running(stage, 2) as cluster:
            task = asyncio.create_task(cluster.call("Fetch", FETCH))
            async with asyncio.timeout(10):
                while not stage.times("Fetch"):
                    await asyncio.sleep(0.01)
        with pytest.raises(UsageError, match="is closed"):
            await task

    run(work())


def test_a_connection_half_open_when_the_block_ends_is_ended_with_it() -> None:
    came = asyncio.Event()

    async def mute(peer: Peer) -> None:
        came.set()
        await silence(peer)

    async def work() -> None:
        stage = Stage(nothing_special)
        async with serving(handler_of(stage, 1)) as first, serving(mute) as second:
            stage.addresses.update({1: first, 2: second})
            async with connect(first) as cluster, asyncio.timeout(10):
                task = asyncio.create_task(cluster.call("ListGroups", to=Node(2)))
                await came.wait()
            # no task of ours is left, be the caller's own still there
            left = asyncio.all_tasks() - {task, asyncio.current_task()}
            assert not [other for other in left if other.get_name().startswith("kafkascope")]
            with pytest.raises(UsageError, match="is closed"):
                await task

    run(work())


def test_a_caller_that_is_cancelled_while_a_connection_opens_is_cancelled() -> None:
    async def work() -> None:
        stage = Stage(nothing_special)
        async with serving(handler_of(stage, 1)) as first, serving(silence) as second:
            stage.addresses.update({1: first, 2: second})
            async with connect(first) as cluster:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await cluster.call("ListGroups", to=Node(2))
                await cluster.call("ListGroups", to=Node(1))

    run(work())
