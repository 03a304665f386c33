"""What programs hand to `connect` and `call` by mistake: one line, never a bare TypeError, never a call without end."""

import asyncio
from typing import Any

import pytest

from kafkascope.client import Address, Cluster, Settings, connect
from kafkascope.errors import NotFoundError, RefusedError, UsageError
from tests.client.stage import FETCH, Stage, nothing_special, play

NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (3, "not an int"),
        (None, "not a NoneType"),
        (b"h:1", "not a bytes"),
        ({"bootstrap.servers": "h:1"}, "not a dict"),
        ([3], "not an int"),
        ([], "no address"),
        ("", "no address"),
    ],
)
def test_what_is_no_address_is_wrong_use(address: Any, message: str) -> None:
    async def work() -> None:
        async with connect(address):
            pass

    with pytest.raises(UsageError, match=message):
        asyncio.run(work())


@pytest.mark.parametrize("name", ["timeout", "connect_timeout"])
@pytest.mark.parametrize("seconds", [NAN, INFINITE, 0, -1, "5", None, True, 1e12])
def test_a_patience_that_is_none_is_wrong_use(name: str, seconds: Any) -> None:
    async def work() -> None:
        async with connect("127.0.0.1:1", **{name: seconds}):
            pass

    with pytest.raises(UsageError, match=f"^{name} is .* seconds"):
        asyncio.run(work())
    with pytest.raises(UsageError, match=f"^{name} is .* seconds"):
        asyncio.run(_with(Settings((Address("127.0.0.1", 1),), **{name: seconds})))


async def _with(settings: Settings) -> None:
    async with connect(settings):
        pass


@pytest.mark.parametrize(
    ("arguments", "more", "message"),
    [
        ((3,), {}, "an API is text"),
        ((None,), {}, "an API is text"),
        (("Metadata", []), {}, "not a list"),
        (("Metadata", ""), {}, "not a str"),
        (("Metadata", 0), {}, "not an int"),
        (("Metadata",), {"to": 1}, "not an int"),
        (("Metadata",), {"to": "node:x"}, "write node:1"),
        (("Metadata",), {"to": ""}, "isn't a target"),
        (("Metadata",), {"timeout": "5"}, "seconds"),
        (("Metadata",), {"timeout": NAN}, "seconds"),
        (("Metadata",), {"timeout": 0}, "seconds"),
    ],
)
def test_what_makes_no_call_is_wrong_use(arguments: Any, more: Any, message: str) -> None:
    async def use(cluster: Cluster, stage: Stage) -> None:
        before = len(stage.asked)
        with pytest.raises(UsageError, match=message):
            await cluster.call(*arguments, **more)
        assert len(stage.asked) == before

    play(nothing_special, use, nodes=1)


def test_an_empty_name_is_told() -> None:
    async def use(cluster: Cluster, _: Stage) -> None:
        with pytest.raises(NotFoundError, match=r"unknown API \(an empty name\)$"):
            await cluster.call("")

    play(nothing_special, use, nodes=1)


def test_addresses_come_in_every_form_and_targets_as_text() -> None:
    async def use(_: Cluster, stage: Stage) -> None:
        address = stage.addresses[1]
        for addresses in (address, str(address), [str(address)], (address,), [f"{address},{address}"]):
            async with connect(addresses) as cluster:
                assert (await cluster.call("ListGroups", to="node:2")).node == 2

    play(nothing_special, use, nodes=2)


def test_errors_call_a_topic_by_its_name_or_by_the_id_in_kafkas_form() -> None:
    async def use(cluster: Cluster, _: Stage) -> None:
        request = {"topics": [{**FETCH["topics"][0], "partitions": [{"partition": 7}]}]}
        with pytest.raises(RefusedError, match="topic orders has 1 partitions, but no partition 7"):
            await cluster.call("Fetch", request)
        from uuid import UUID

        with pytest.raises(RefusedError, match="topic AAAAAAAAAAAAAAAAAAAACQ: UNKNOWN_TOPIC"):
            await cluster.topic_name(UUID(int=9))

    play(nothing_special, use, nodes=1)
