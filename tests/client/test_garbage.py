"""Ports that do not speak Kafka, or stop in the middle of it: one clear line each, in time, and nothing left over."""

import asyncio

import pytest

from kafkascope.client import connect
from kafkascope.client.settings import Address, Settings
from kafkascope.errors import DecodeError, KafkascopeError, ReachError
from kafkascope.limits import MAX_FRAME_BYTES
from tests.client.leftovers import run
from tests.client.servers import Handler, Peer, sending, serving, silence

PATIENCE = 5.0
SHORT = 0.3


def refused(
    *handlers: Handler,
    api: str = "ListGroups",
    seconds: float = PATIENCE,
    connecting: float = PATIENCE,
    kind: type[KafkascopeError] = ReachError,
) -> str:
    """What a call to such a port says; always one line with the address."""

    async def once(settings: Settings) -> None:
        async with connect(settings) as cluster:
            await cluster.call(api)

    async def work() -> str:
        async with serving(*handlers) as address:
            settings = Settings((address,), timeout=seconds, connect_timeout=connecting)
            with pytest.raises(kind) as raised:
                await asyncio.wait_for(once(settings), 2 * seconds + PATIENCE)
        text = str(raised.value)
        assert str(address) in text
        assert "\n" not in text
        return text

    return run(work())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "an HTTP server, not Kafka"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "an SSH server, not Kafka"),
        (b"-ERR unknown command\r\n", "Redis, not Kafka"),
        (b"220 mail ready\r\n", "a mail or FTP server, not Kafka"),
        (b"what do you want?\n", "a server with a text protocol, not Kafka"),
        (bytes.fromhex("15 0303 0002 0246"), "a TLS listener: connect with TLS (--tls)"),
        (bytes.fromhex("7fffffff"), "looks like a server that isn't Kafka: give the port of a broker"),
        (bytes.fromhex("ffffffff"), "looks like a server that isn't Kafka: give the port of a broker"),
        (bytes.fromhex("00000000"), "the shortest has 4: it looks like a server that isn't Kafka"),
        (bytes.fromhex("ff000000 00000000"), "isn't Kafka: give the port of a broker"),
        (bytes.fromhex("e3a91277 00112233"), "isn't Kafka: give the port of a broker"),
    ],
)
def test_names_who_answers_on_a_port_that_is_not_kafkas(data: bytes, message: str) -> None:
    assert message in refused(sending(data))


@pytest.mark.parametrize("data", [b"SSH-2.0-OpenSSH_9.6\r\n", b"220 mail ready\r\n"])
def test_names_a_server_that_speaks_first(data: bytes) -> None:
    assert "not Kafka" in refused(sending(data, first=True))


def test_a_frame_larger_than_the_limit_is_not_waited_for() -> None:
    text = refused(sending((MAX_FRAME_BYTES + 1).to_bytes(4, "big")))
    assert "sent no response" in text


def test_a_close_before_any_answer_hints_at_tls() -> None:
    text = refused(sending(b""))
    assert "closed the connection" in text
    assert "--tls" in text


def test_a_close_after_api_versions_hints_at_sasl() -> None:
    async def handler(peer: Peer) -> None:
        await peer.greet()

    text = refused(handler, seconds=30.0)
    assert "--sasl-mechanism" in text
    assert "tried for" not in text  # three times are enough to know


@pytest.mark.parametrize("data", [b"\x00", b"\x00\x00\x00", b"\x00\x00\x01\x00", b"\x00\x00\x01\x00\x00\x00\x00\x00ab"])
def test_a_close_in_the_middle_of_a_frame_says_so(data: bytes) -> None:
    assert "during a response" in refused(sending(data))


def test_half_an_answer_then_close_fails_a_call_that_was_under_way() -> None:
    async def handler(peer: Peer) -> None:
        request = await peer.greet()
        await peer.write(peer.frame(request, {"groups": [{"groupId": "g" * 100}]})[:40])

    text = refused(handler, seconds=SHORT)
    assert "ListGroups v5 at" in text
    assert "during a response (36 of " in text


def test_silence_from_the_start_ends_at_the_connect_timeout() -> None:
    text = refused(silence, connecting=SHORT)
    assert "no response to ApiVersions within 0.3 s" in text


def test_silence_after_the_greeting_ends_at_the_deadline() -> None:
    async def handler(peer: Peer) -> None:
        await peer.greet()
        await silence(peer)

    text = refused(handler, seconds=SHORT)
    assert "ListGroups v5 at" in text
    assert "no response within 0.3 s" in text


def test_half_an_answer_then_silence_ends_at_the_deadline() -> None:
    async def handler(peer: Peer) -> None:
        request = await peer.greet()
        await peer.write(peer.frame(request, {"groups": []})[:-1])
        await silence(peer)

    assert "no response within 0.3 s" in refused(handler, seconds=SHORT)


def test_a_wrong_correlation_id_closes_the_connection() -> None:
    connections = []

    async def handler(peer: Peer) -> None:
        connections.append(peer)
        request = await peer.greet()
        answer = bytearray(peer.frame(request, {"groups": []}))
        answer[4:8] = (4711).to_bytes(4, "big")
        await peer.write(bytes(answer))
        await silence(peer)

    text = refused(handler, seconds=30.0)
    assert "responded with correlation id 4711 instead of " in text
    assert len(connections) == 1  # it is not Kafka, and will not be


def test_an_answer_too_short_for_a_header_is_told() -> None:
    assert "sent a response of 2 bytes" in refused(sending(b"\x00\x00\x00\x02ab"))


def test_an_answer_to_api_versions_that_is_garbage_is_not_kafka() -> None:
    async def handler(peer: Peer) -> None:
        request = await peer.request()
        content = request.correlation_id.to_bytes(4, "big") + b"\x00\x00\xff\xff\xff\xff"
        await peer.write(len(content).to_bytes(4, "big") + content)
        await silence(peer)

    assert "aren't a response to ApiVersions; this isn't Kafka" in refused(handler)


def test_an_answer_that_does_not_decode_names_message_and_place() -> None:
    async def handler(peer: Peer) -> None:
        request = await peer.greet()
        content = request.correlation_id.to_bytes(4, "big") + b"\x00" + b"\x00" * 6 + b"\xff\xff\xff\xff\x07"
        await peer.write(len(content).to_bytes(4, "big") + content)
        await silence(peer)

    text = refused(handler, kind=DecodeError)
    assert "ListGroups v5 at" in text
    assert "ListGroupsResponse v5, groups" in text


def test_a_port_where_nobody_listens_is_told_at_once() -> None:
    async def work() -> None:
        async with serving(silence) as address:
            pass
        with pytest.raises(ReachError, match=f"{address}: connection refused; is a broker running"):
            async with connect(str(address)):
                raise AssertionError("not reached")

    run(work())


def test_a_name_that_nobody_knows_is_told_with_the_way_out() -> None:
    async def work() -> None:
        with pytest.raises(ReachError, match=r"the name no-such-host\.invalid can't be resolved .*--resolve"):
            async with connect(Settings((Address("no-such-host.invalid", 9092),))):
                raise AssertionError("not reached")

    run(work())


def test_the_second_address_serves_when_the_first_does_not_answer() -> None:
    async def handler(peer: Peer) -> None:
        request = await peer.greet()
        await peer.answer(request, {"groups": []})
        await silence(peer)

    async def work() -> None:
        async with (
            serving(sending(b"HTTP/1.1 400")) as bad,
            serving(handler) as good,
            connect(Settings((bad, good))) as cluster,
        ):
            assert (await cluster.call("ListGroups")).address == good

    run(work())


def test_a_server_that_takes_no_tls_is_told_so() -> None:
    """The bytes that such servers send back: none, and text."""
    pytest.importorskip("kafkascope.client.transport.tls")
    from kafkascope.client.settings import Tls

    async def once(*handlers: Handler) -> str:
        async with serving(*handlers) as address:
            with pytest.raises(ReachError) as raised:
                async with connect(Settings((address,), tls=Tls())):
                    raise AssertionError("not reached")
            assert str(address) in str(raised.value)
            return str(raised.value)

    async def close(peer: Peer) -> None:
        await peer.reader.read(4)

    async def text(peer: Peer) -> None:
        await peer.reader.read(4)
        await peer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    for handler in (close, text):
        assert "TLS" in run(once(handler))
