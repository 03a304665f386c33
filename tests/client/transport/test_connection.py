"""One connection: answers in the order of the requests, whatever becomes of the callers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kafkascope import __version__
from kafkascope.client.answer import Answer
from kafkascope.client.opening import open_connection
from kafkascope.client.settings import Settings
from kafkascope.client.transport.connection import Connection, LostError
from kafkascope.client.transport.deadline import after
from kafkascope.codec.frame import DecodedFrame
from kafkascope.errors import EncodeError, ReachError
from tests.client.leftovers import run
from tests.client.servers import BROKER, EVERYTHING, Handler, Peer, ranges, serving, silence


def with_connection(handler: Handler, use: Callable[[Connection], Awaitable[Any]], **settings: Any) -> list[Answer]:
    """Opens a connection to the server, uses it, closes it; gives the ApiVersions answers."""
    seen: list[Answer] = []

    async def work() -> None:
        async with serving(handler) as address:
            connection = await open_connection(Settings((address,), **settings), address, after(5), seen.append)
            try:
                async with asyncio.timeout(10):
                    await use(connection)
            finally:
                await connection.close()

    run(work())
    return seen


def groups(number: int) -> dict[str, Any]:
    return {"groups": [{"groupId": str(number)}]}


def group_of(answer: Answer) -> str:
    group_id: str = answer.value["groups"][0]["groupId"]
    return group_id


async def ask(connection: Connection, state: str = "") -> Answer:
    return await connection.call("ListGroups", 5, {"statesFilter": [state]})


def test_several_calls_under_way_get_their_answers_in_order() -> None:
    async def handler(peer: Peer) -> None:
        requests = [await peer.greet()] + [await peer.request() for _ in range(49)]
        await peer.write(b"".join(peer.frame(request, groups(number)) for number, request in enumerate(requests)))
        await silence(peer)

    async def use(connection: Connection) -> None:
        answers = await asyncio.gather(*(ask(connection) for _ in range(50)))
        assert [group_of(answer) for answer in answers] == [str(number) for number in range(50)]
        assert len({answer.correlation_id for answer in answers}) == 50

    with_connection(handler, use)


def test_an_answer_that_comes_byte_by_byte_is_read_whole() -> None:
    async def handler(peer: Peer) -> None:
        request = await peer.greet()
        for byte in peer.frame(request, groups(1)):
            await peer.write(bytes([byte]))
            await asyncio.sleep(0)
        await silence(peer)

    async def use(connection: Connection) -> None:
        assert group_of(await ask(connection)) == "1"

    with_connection(handler, use)


def test_an_answer_of_several_megabytes_is_read_whole() -> None:
    rows = [{"groupId": "g" * 30_000, "groupState": str(number)} for number in range(200)]

    async def handler(peer: Peer) -> None:
        await peer.answer(await peer.greet(), {"groups": rows})
        await silence(peer)

    async def use(connection: Connection) -> None:
        answer = await ask(connection)
        assert [row["groupState"] for row in answer.value["groups"]] == [str(number) for number in range(200)]
        assert answer.exact

    with_connection(handler, use)


def test_a_cancelled_call_spares_the_others_and_ends_the_connection_after_them() -> None:
    cancelled, closed = asyncio.Event(), asyncio.Event()

    async def handler(peer: Peer) -> None:
        requests = [await peer.greet(), await peer.request(), await peer.request()]
        await cancelled.wait()
        for number, request in enumerate(requests):
            await peer.answer(request, groups(number))
        assert await peer.reader.read() == b""
        closed.set()

    async def use(connection: Connection) -> None:
        first, doomed, third = (asyncio.create_task(ask(connection)) for _ in range(3))
        await asyncio.sleep(0)
        doomed.cancel()
        with pytest.raises(asyncio.CancelledError):
            await doomed
        assert not connection.usable
        cancelled.set()
        assert [group_of(await first), group_of(await third)] == ["0", "2"]
        await closed.wait()
        assert connection.idle
        with pytest.raises(LostError, match="closed the connection after the last response"):
            await ask(connection)

    with_connection(handler, use)


def test_a_lone_cancelled_call_closes_the_socket_at_once() -> None:
    closed = asyncio.Event()

    async def handler(peer: Peer) -> None:
        await peer.greet()
        assert await peer.reader.read() == b""
        closed.set()

    async def use(connection: Connection) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await ask(connection)
        await closed.wait()

    with_connection(handler, use)


def test_everyone_who_waits_is_told_when_the_connection_ends() -> None:
    async def handler(peer: Peer) -> None:
        await peer.greet()
        await peer.request()
        await peer.request()

    async def use(connection: Connection) -> None:
        results = await asyncio.gather(*(ask(connection) for _ in range(3)), return_exceptions=True)
        assert [type(result) for result in results] == [LostError] * 3
        with pytest.raises(LostError, match="closed the connection"):
            await ask(connection)

    with_connection(handler, use)


def test_an_answer_that_nobody_asked_for_ends_the_connection() -> None:
    async def handler(peer: Peer) -> None:
        request = await peer.greet()
        await peer.write(peer.frame(request, groups(1)) + peer.frame(request, groups(2)))
        await silence(peer)

    async def use(connection: Connection) -> None:
        assert group_of(await ask(connection)) == "1"
        while connection.usable:
            await asyncio.sleep(0)
        with pytest.raises(LostError, match="sent an unexpected response"):
            await ask(connection)

    with_connection(handler, use)


def test_produce_with_acks_0_expects_no_answer() -> None:
    produced: list[DecodedFrame] = []

    async def handler(peer: Peer) -> None:
        produced.append(await peer.greet())
        await peer.answer(await peer.request(), groups(7))
        await silence(peer)

    async def use(connection: Connection) -> None:
        topic = {"name": "t", "partitionData": [{"index": 0, "records": b""}]}
        answer = await connection.call("Produce", 9, {"acks": 0, "timeoutMs": 1, "topicData": [topic]})
        assert (answer.value, answer.response_bytes, answer.exact) == ({}, b"", True)
        assert group_of(await ask(connection)) == "7"

    with_connection(handler, use)
    assert produced[0].api == "Produce"


def test_a_value_that_is_no_request_sends_nothing_and_harms_nothing() -> None:
    async def handler(peer: Peer) -> None:
        request = await peer.greet()
        assert request.body is not None
        assert request.body.value["statesFilter"] == ["good"]
        await peer.answer(request, groups(1))
        await silence(peer)

    async def use(connection: Connection) -> None:
        with pytest.raises(EncodeError, match="statesFiltre"):
            await connection.call("ListGroups", 5, {"statesFiltre": []})
        assert group_of(await ask(connection, "good")) == "1"

    with_connection(handler, use)


def test_frames_in_the_answer_are_those_of_the_wire() -> None:
    frames: list[bytes] = []

    async def handler(peer: Peer) -> None:
        request = await peer.greet()
        frames.append(peer.frame(request, groups(1))[4:])
        await peer.write(len(frames[0]).to_bytes(4, "big") + frames[0])
        await silence(peer)

    async def use(connection: Connection) -> None:
        answer = await ask(connection)
        assert answer.response_bytes == frames[0]
        assert answer.request_bytes[:4] == bytes.fromhex("0010 0005")  # ListGroups v5
        assert answer.sent_at <= answer.received_at

    with_connection(handler, use)


def test_frames_of_a_login_are_kept_from_the_answer() -> None:
    async def handler(peer: Peer) -> None:
        request = await peer.greet()
        await peer.answer(request, {"authBytes": b"secret"})
        await silence(peer)

    async def use(connection: Connection) -> None:
        answer = await connection.call("SaslAuthenticate", 2, {"authBytes": b"secret"})
        assert (answer.request_bytes, answer.response_bytes) == (b"", b"")

    with_connection(handler, use)


def test_a_bare_token_goes_out_and_comes_back_without_a_header() -> None:
    async def handler(peer: Peer) -> None:
        request = await peer.greet()
        await peer.answer(request, {"mechanisms": ["PLAIN"]})
        assert await peer.reader.readexactly(9) == b"\x00\x00\x00\x05token"
        await peer.write(b"\x00\x00\x00\x00")  # after a raw PLAIN token the answer is a frame of length 0
        await peer.answer(await peer.request(), groups(1))
        await silence(peer)

    async def use(connection: Connection) -> None:
        await connection.call("SaslHandshake", 0, {"mechanism": "PLAIN"})
        assert await connection.token(b"token") == b""
        assert group_of(await ask(connection)) == "1"

    with_connection(handler, use)


def negotiated(answer_to: Callable[[Peer, DecodedFrame], Awaitable[None]]) -> tuple[list[int], list[Answer], Any]:
    """The versions of ApiVersions that were asked for, the answers seen, and the ranges of the connection."""
    versions_asked: list[int] = []
    responses: list[Any] = []

    async def handler(peer: Peer) -> None:
        while True:
            request = await peer.request()
            assert request.api == "ApiVersions"
            versions_asked.append(request.version)
            await answer_to(peer, request)

    async def use(connection: Connection) -> None:
        responses.append(dict(connection.versions))

    return versions_asked, with_connection(handler, use), responses[0]


def test_api_versions_is_asked_newest_first_and_names_the_software() -> None:
    async def answer_to(peer: Peer, request: DecodedFrame) -> None:
        assert request.body is not None
        assert request.body.value["clientSoftwareName"] == "kafkascope"
        assert request.body.value["clientSoftwareVersion"] == __version__
        assert request.header.value["clientId"] == "kafkascope"
        await peer.answer(request, {"apiKeys": ranges(BROKER)})

    versions_asked, (seen,), versions = negotiated(answer_to)
    assert versions_asked == [EVERYTHING[18][1]]
    assert seen.api_version == versions_asked[0]
    assert versions == BROKER


def test_error_35_leads_to_the_newest_version_that_the_broker_names() -> None:
    async def answer_to(peer: Peer, request: DecodedFrame) -> None:
        if request.version > 2:
            await peer.answer(request, {"errorCode": 35, "apiKeys": ranges({18: (0, 2)})}, 0)
        else:
            await peer.answer(request, {"apiKeys": ranges({18: (0, 2), 3: (0, 7)})})

    versions_asked, (seen,), versions = negotiated(answer_to)
    assert versions_asked == [EVERYTHING[18][1], 2]
    assert seen.api_version == 2
    assert versions == {18: (0, 2), 3: (0, 7)}


def test_error_35_without_a_list_leads_to_version_0() -> None:
    """Brokers before 2.4."""

    async def answer_to(peer: Peer, request: DecodedFrame) -> None:
        if request.version:
            await peer.answer(request, {"errorCode": 35, "apiKeys": []}, 0)
        else:
            await peer.answer(request, {"apiKeys": ranges({18: (0, 0), 3: (0, 1)})})

    versions_asked, _, versions = negotiated(answer_to)
    assert versions_asked == [EVERYTHING[18][1], 0]
    assert versions[3] == (0, 1)


def test_an_error_other_than_35_is_no_reason_to_ask_lower() -> None:
    versions_asked: list[int] = []

    async def answer_to(peer: Peer, request: DecodedFrame) -> None:
        versions_asked.append(request.version)
        await peer.answer(request, {"errorCode": 42, "apiKeys": []})

    with pytest.raises(ReachError, match=r"refuses ApiVersions with INVALID_REQUEST \(42\)"):
        negotiated(answer_to)
    assert len(versions_asked) == 1


def test_a_broker_that_answers_35_for_ever_is_given_up() -> None:
    async def answer_to(peer: Peer, request: DecodedFrame) -> None:
        await peer.answer(request, {"errorCode": 35, "apiKeys": ranges({18: (0, 3)})}, 0)

    with pytest.raises(ReachError, match=r"UNSUPPORTED_VERSION \(35\)"):
        negotiated(answer_to)


def test_produce_of_a_broker_without_fetch_0_begins_at_3() -> None:
    async def answer_to(peer: Peer, request: DecodedFrame) -> None:
        await peer.answer(request, {"apiKeys": ranges({0: (0, 13), 1: (4, 18)})})

    assert negotiated(answer_to)[2] == {0: (3, 13), 1: (4, 18)}


def test_produce_of_an_old_broker_begins_where_it_says() -> None:
    async def answer_to(peer: Peer, request: DecodedFrame) -> None:
        await peer.answer(request, {"apiKeys": ranges({0: (0, 11), 1: (0, 17)})})

    assert negotiated(answer_to)[2] == {0: (0, 11), 1: (0, 17)}
