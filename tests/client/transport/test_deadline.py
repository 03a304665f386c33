"""Deadlines, pauses, and which of several reasons is told at the end."""

import asyncio
import itertools

import pytest

from kafkascope.client.attempts import Attempts
from kafkascope.client.transport.connection import LostError
from kafkascope.client.transport.deadline import after, pauses, within
from kafkascope.client.transport.dialling import UnreachableError
from kafkascope.errors import ReachError


def test_a_deadline_that_passes_says_what_was_waited_for() -> None:
    async def work() -> None:
        async with within(after(0.01), lambda: "the impossible"):
            await asyncio.Event().wait()

    with pytest.raises(ReachError, match="the impossible"):
        asyncio.run(work())


def test_a_timeout_of_the_network_is_not_the_deadline() -> None:
    async def work() -> None:
        async with within(after(60), lambda: "the impossible"):
            raise TimeoutError(110, "Connection timed out")

    with pytest.raises(TimeoutError, match="Connection timed out"):
        asyncio.run(work())


def test_the_earlier_of_two_deadlines_counts() -> None:
    async def work() -> None:
        long = after(60)
        assert long.earlier(1).seconds == 1
        assert after(1).earlier(60).seconds == 1
        assert after(0).passed()
        assert not long.passed()

    asyncio.run(work())


def test_pauses_grow_to_a_second_and_are_not_in_step() -> None:
    waits = list(itertools.islice(pauses(), 8))
    assert 0.08 <= waits[0] <= 0.12
    assert all(0.8 <= pause <= 1.2 for pause in waits[4:])
    assert waits != list(itertools.islice(pauses(), 8))


def problem_of(*errors: ReachError, seconds: float = 0.0) -> str:
    """What a call says that fails like this, one try after the other, with no time left after the last."""

    async def work() -> None:
        tries = Attempts("ListGroups", after(60))
        for error in errors[:-1]:
            await tries.failed(error)
        tries._deadline = after(seconds)
        await tries.failed(errors[-1])

    with pytest.raises(ReachError) as raised:
        asyncio.run(work())
    return str(raised.value)


def test_the_name_of_the_call_and_the_time_stand_beside_the_last_reason() -> None:
    assert problem_of(UnreachableError("a:1: refused")) == "ListGroups: a:1: refused (tried for 0 s)"
    assert (
        problem_of(UnreachableError("a:1: refused"), LostError("a:1: closed"))
        == "ListGroups: a:1: closed (tried for 0 s)"
    )
    late = LostError("ListGroups v5 at a:1: no response")
    assert problem_of(late) == "ListGroups v5 at a:1: no response within 0 s; --timeout SECONDS waits longer"


def test_what_made_another_try_necessary_tells_more_than_the_lack_of_time() -> None:
    first = LostError("a:1: closed in the middle")
    for last in (LostError("ListGroups v5 at a:1: no response"), ReachError("a:1: no connection within 5 s")):
        assert problem_of(first, last) == "ListGroups: a:1: closed in the middle (tried for 0 s)"


def test_an_error_that_stays_ends_the_call_whatever_came_before() -> None:
    assert problem_of(LostError("a:1: closed"), ReachError("a:1: login failed"), seconds=60) == "a:1: login failed"
