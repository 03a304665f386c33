"""Gates and budgets: so many at once, so many in the queue, for so long; and what leaves makes room."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from kafkascope.explorer.gate import Busy, ByteBudget, Gate

LONG = 600.0


class Guests:
    """Tasks that are inside a gate until they are let out."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.inside: list[int] = []
        self.out = asyncio.Event()

    async def enter(self, number: int) -> None:
        async with self.gate.entered():
            self.inside.append(number)
            await self.out.wait()

    async def come(self, *numbers: int) -> "list[asyncio.Task[None]]":
        tasks = [asyncio.create_task(self.enter(number)) for number in numbers]
        await settled()
        return tasks


async def settled() -> None:
    """Until every task has gone as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


def run(made: Coroutine[Any, Any, None]) -> None:
    asyncio.run(made)


def test_as_many_as_it_says_are_inside_and_the_queue_follows_in_order() -> None:
    async def check() -> None:
        guests = Guests(Gate("busy", 2, queued=3, seconds=LONG))
        tasks = await guests.come(1, 2, 3, 4, 5)
        assert guests.inside == [1, 2]
        guests.out.set()
        await asyncio.gather(*tasks)
        assert guests.inside == [1, 2, 3, 4, 5]

    run(check())


def test_whoever_finds_the_queue_full_is_told_to_wait() -> None:
    async def check() -> None:
        guests = Guests(Gate("busy", 1, queued=1, seconds=LONG))
        tasks = await guests.come(1, 2)
        with pytest.raises(Busy, match=r"^busy; try again in 10 s$"):
            await guests.enter(3)
        guests.out.set()
        await asyncio.gather(*tasks)
        # There is room again.
        await guests.enter(4)
        assert guests.inside == [1, 2, 4]

    run(check())


def test_whoever_waits_too_long_is_told_to_wait_and_leaves_the_queue() -> None:
    async def check() -> None:
        guests = Guests(Gate("busy", 1, queued=1, seconds=0.01))
        tasks = await guests.come(1)
        for number in (2, 3):
            with pytest.raises(Busy):
                await guests.enter(number)
        guests.out.set()
        await asyncio.gather(*tasks)
        await guests.enter(4)
        assert guests.inside == [1, 4]

    run(check())


def test_a_turn_of_someone_who_is_gone_goes_to_the_next() -> None:
    async def check() -> None:
        guests = Guests(Gate("busy", 1, queued=3, seconds=LONG))
        first, gone, late, last = await guests.come(1, 2, 3, 4)
        gone.cancel()
        await settled()
        guests.out.set()
        await first
        # Its turn came, and it is cancelled before it has seen that.
        late.cancel()
        await last
        assert guests.inside == [1, 4] or guests.inside == [1, 3, 4]
        await guests.enter(5)
        assert guests.inside[-1] == 5

    run(check())


def test_bytes_are_given_back_whatever_happens() -> None:
    budget = ByteBudget("busy", 100)
    with budget.held(60), pytest.raises(Busy), budget.held(41):
        raise AssertionError
    with pytest.raises(RuntimeError), budget.held(100):
        raise RuntimeError
    with budget.held(100):
        pass
