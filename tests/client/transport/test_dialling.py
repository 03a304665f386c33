"""Names and addresses: every address of a name is tried, and a name server that is silent holds nobody up."""

import asyncio
import errno
import socket
import threading
from typing import Any

import pytest

from kafkascope.client import Settings, connect
from kafkascope.client.settings import Address
from kafkascope.client.transport.dialling import is_ip_address, look_up
from kafkascope.errors import ReachError
from tests.client.leftovers import run
from tests.client.servers import HOST, Peer, serving, silence


async def handler(peer: Peer) -> None:
    await peer.answer(await peer.greet(), {"groups": []})
    await silence(peer)


def named(monkeypatch: pytest.MonkeyPatch, *numbers: str) -> None:
    """As if a name had these addresses."""
    real = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, **more: Any) -> list[Any]:
        assert host == "broker.test"
        return [row for number in numbers for row in real(number, port, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


def test_the_next_address_of_a_name_is_tried_when_one_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with serving(handler) as address:
            named(monkeypatch, "127.0.0.2", HOST)
            async with connect(Settings((Address("broker.test", address.port),))) as cluster:
                assert (await cluster.call("ListGroups")).exact

    run(work())


def test_when_all_addresses_of_a_name_refuse_it_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        named(monkeypatch, "127.0.0.2", "127.0.0.3")
        with pytest.raises(ReachError, match=r"^broker\.test:1: connection refused; is a broker running"):
            async with connect(Settings((Address("broker.test", 1),))):
                raise AssertionError("not reached")

    run(work())


def test_the_reason_is_told_where_asyncio_names_the_address_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(host: str, port: int, **_: Any) -> Any:
        raise OSError(errno.EHOSTUNREACH, f"Connect call failed ({host!r}, {port})")

    monkeypatch.setattr(asyncio, "open_connection", fail)

    async def work() -> None:
        with pytest.raises(ReachError, match=r"^10\.9\.9\.9:1: no route to host; is a broker running"):
            async with connect("10.9.9.9:1"):
                pass

    run(work())


def test_a_name_server_that_is_silent_holds_up_neither_the_call_nor_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    looking = threading.Event()

    def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        assert threading.current_thread().daemon  # the program may end before it does
        looking.set()
        answered.wait(60)
        return []

    async def work() -> None:
        with pytest.raises(ReachError, match=r"broker\.test:9092: no connection within 0\.2 s"):
            async with connect(Settings((Address("broker.test", 9092),), connect_timeout=0.2)):
                raise AssertionError("not reached")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    try:
        run(work())
        assert looking.is_set()
        assert not answered.is_set()
    finally:
        answered.set()


def test_a_name_that_is_no_name_is_told() -> None:
    async def work() -> None:
        with pytest.raises(ReachError, match="can't be resolved"):
            async with connect(Settings((Address("a" * 70 + ".test", 9092),))):
                raise AssertionError("not reached")

    run(work())


@pytest.mark.parametrize(("host", "number"), [("127.0.0.1", True), ("::1", True), ("localhost", False), ("", False)])
def test_numbers_are_not_looked_up(host: str, number: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_ip_address(host) is number
    monkeypatch.delattr(socket, "getaddrinfo")
    if number:
        assert asyncio.run(look_up(host, 9092)) == [host]
