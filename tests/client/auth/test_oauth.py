"""Tokens: given, out of a file, and from an endpoint over HTTP and HTTPS that answers well, badly, or not at all."""

# ruff: noqa: S106, S107 - the secrets are planted

import asyncio
import fcntl
import socket
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from kafkascope.client import Cluster
from kafkascope.client.auth.oauth import token_of
from kafkascope.client.settings import Sasl, Secret
from kafkascope.codec.frame import DecodedFrame
from kafkascope.errors import InputError, KafkascopeError, ReachError, UsageError
from kafkascope.limits import MAX_TOKEN_ANSWER_BYTES
from lab.certificates import Certificates, make_certificates
from lab.tokens import Tokens, TokenServer
from lab.wire import until
from tests.client.stage import Stage, play

SECONDS = 30.0
USERS = {"id": "topsecret"}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Tokens:
    return Tokens(tmp_path_factory.mktemp("tokens"))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def get(sasl: Sasl) -> str:
    async def within() -> Secret:
        async with asyncio.timeout(SECONDS):
            return await token_of(sasl)

    return asyncio.run(within()).reveal()


def asking(url: str, secret: str = "topsecret", ca: bytes | None = None) -> Sasl:
    return Sasl(
        "OAUTHBEARER", token_url=url, token_client_id="id", token_client_secret=Secret(secret), token_ca=ca,
        token_scope="all",
    )  # fmt: skip


def test_a_file_is_read_anew_each_time(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text("first\n")
    sasl = Sasl("OAUTHBEARER", token_file=path)
    assert get(sasl) == "first"
    path.write_text("second\n")
    assert get(sasl) == "second"


@pytest.mark.parametrize("content", ["two words", "a\nb", "a\x01b", "ä"])
def test_what_is_no_token_is_refused_without_showing_it(tmp_path: Path, content: str) -> None:
    (tmp_path / "t").write_text(content)
    with pytest.raises(InputError) as caught:
        get(Sasl("OAUTHBEARER", token_file=tmp_path / "t"))
    assert content not in str(caught.value)


def test_client_credentials_over_http(tokens: Tokens) -> None:
    with TokenServer(tokens, USERS) as server:
        token = get(asking(server.url))
    assert token.count(".") == 2
    assert server.asked == [{"grant_type": ["client_credentials"], "scope": ["all"]}]


def test_client_credentials_over_https_with_an_authority_of_its_own(tokens: Tokens, certificates: Certificates) -> None:
    with TokenServer(tokens, USERS, certificates.broker) as server:
        assert get(asking(server.url, ca=certificates.ca.read_bytes())).count(".") == 2
        with pytest.raises(ReachError, match="authority that isn't trusted; give the authority with --token-ca FILE"):
            get(asking(server.url))


def test_a_wrong_client_secret_is_one_line_without_it(tokens: Tokens) -> None:
    with TokenServer(tokens, USERS) as server, pytest.raises(ReachError) as caught:
        get(asking(server.url, "wrong-secret"))
    assert "returned status 401 (invalid_client" in str(caught.value) and "wrong-secret" not in str(caught.value)


@contextmanager
def endpoint(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """One connection is taken and handed to `serve`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(SECONDS)

        def run() -> None:
            link, _ = listener.accept()
            with link:
                link.settimeout(SECONDS)
                link.recv(65536)
                serve(link)

        thread = threading.Thread(target=run)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/token?key=topsecret"
        thread.join()


def saying(answer: bytes) -> Callable[[socket.socket], None]:
    return lambda link: link.sendall(answer)


@pytest.mark.parametrize(
    "answer",
    [
        b'HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\n{"access_token": "a.b.c"}',
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b'8\r\n{"access\r\n11;x=y\r\n_token": "a.b.c"}\r\n0\r\n\r\n',
        b'HTTP/1.0 200 OK\r\n\r\n{"access_token": "a.b.c"}',
        b'HTTP/1.1 200 OK\r\n\r\n{"id_token": "a.b.c"}',
    ],
)
def test_forms_of_a_good_answer(answer: bytes) -> None:
    with endpoint(saying(answer)) as url:
        assert get(asking(url)) == "a.b.c"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "no complete HTTP response"),
        (b"SSH-2.0\r\n\r\n", "no complete HTTP response"),
        (b"HTTP/1.1 2x0 OK\r\n\r\n", "no complete HTTP response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", "no complete HTTP response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}", "no complete HTTP response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{}", "no complete HTTP response"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "no complete HTTP response"),
        (b"HTTP/1.1 200 OK\r\n\r\nnot json", "no access_token"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000, "no access_token"),
        (b'HTTP/1.1 200 OK\r\n\r\n{"access_token": 7}', "no access_token"),
        (b'HTTP/1.1 200 OK\r\n\r\n{"access_token": "a b topsecret"}', "a token is one word"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://x\r\n\r\n", "returned status 302"),
        (
            b'HTTP/1.1 400 Bad\r\n\r\n{"error": "bad", "error_description": "topsecret is wrong"}',
            r"bad \*\*\* is wrong",
        ),
    ],
)
def test_every_bad_answer_is_one_line_without_the_secret(answer: bytes, message: str) -> None:
    with endpoint(saying(answer)) as url, pytest.raises(KafkascopeError, match=message) as caught:
        get(asking(url))
    assert "topsecret" not in str(caught.value) and "\n" not in str(caught.value)


PADDED = b'{"access_token": "a.b.c", "more": "' + b"x" * MAX_TOKEN_ANSWER_BYTES + b'"}'


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(PADDED), PADDED),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n"
        % (600_000, PADDED[:600_000], len(PADDED) - 600_000, PADDED[600_000:]),
        b"HTTP/1.1 200 OK\r\n\r\n" + PADDED,
        b"HTTP/1.1 200 OK\r\nX: " + PADDED + b"\r\n\r\n",
    ],
    ids=["length", "chunks", "rest", "head"],
)
def test_an_answer_beyond_the_limit_is_not_read(answer: bytes) -> None:
    def serve(link: socket.socket) -> None:
        # this side hangs up in the middle
        with suppress(OSError):
            link.sendall(answer)

    with endpoint(serve) as url, pytest.raises(ReachError, match="no complete HTTP response"):
        get(asking(url))


def test_a_body_that_comes_in_pieces_is_whole() -> None:
    def serve(link: socket.socket) -> None:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in (b"HTTP/1.1 200 OK\r\n", b'\r\n{"access', b'_token": ', b'"a.b.c"}'):
            link.sendall(part)
            # until the other side has taken it
            until("taken", lambda: unsent(link) == 0, SECONDS)

    with endpoint(serve) as url:
        assert get(asking(url)) == "a.b.c"


def unsent(link: socket.socket) -> int:
    held = fcntl.ioctl(link, termios.TIOCOUTQ, bytes(4))
    return int.from_bytes(held, sys.byteorder)


def _hold(link: socket.socket) -> None:
    link.recv(1)


def test_an_endpoint_that_says_nothing_is_given_up_in_time() -> None:
    async def impatient(url: str) -> None:
        async with asyncio.timeout(0.2):
            await token_of(asking(url))

    # it holds the connection until this side lets go
    with endpoint(_hold) as url, pytest.raises(TimeoutError):
        asyncio.run(impatient(url))


def test_an_endpoint_that_says_nothing_is_blamed_and_not_the_broker() -> None:
    def script(_: int, request: DecodedFrame) -> dict[str, Any] | None:
        return {"mechanisms": ["OAUTHBEARER"]} if request.api == "SaslHandshake" else None

    async def use(cluster: Cluster, _: Stage) -> None:
        raise AssertionError(cluster)

    with endpoint(_hold) as url, pytest.raises(ReachError) as caught:
        play(script, use, nodes=1, sasl=asking(url), connect_timeout=0.5)
    message = str(caught.value)
    assert f"no token from {url.partition('?')[0]} within 0.5 s; is the token endpoint up" in message
    assert "broker" not in message and "topsecret" not in message


def test_an_endpoint_without_tls_is_told_with_its_own_remedy() -> None:
    with endpoint(saying(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as url, pytest.raises(ReachError) as caught:
        get(asking(url.replace("http:", "https:")))
    assert (
        "doesn't speak TLS" in str(caught.value)
        and "http://" in str(caught.value)
        and "--no-tls" not in str(caught.value)
    )


def test_an_endpoint_that_is_not_there_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    message = f"http://127.0.0.1:{port}/token: the token endpoint is not reached: connection refused$"
    with pytest.raises(ReachError, match=message):
        get(asking(f"http://127.0.0.1:{port}/token"))


@pytest.mark.parametrize("url", ["ftp://a/b", "a/b", "http://", "http://a:x/", "http://a/b c", "http://a/\r\nX: y"])
def test_what_is_no_url_is_wrong_use(url: str) -> None:
    with pytest.raises(UsageError, match="isn't an http or https URL"):
        get(asking(url))
