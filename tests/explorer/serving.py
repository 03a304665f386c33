"""The explorer on a real socket, in a thread of the test, with times and caps of the test's choice."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.applications import Starlette

from kafkascope.explorer.server.connection import connections
from kafkascope.explorer.server.run import Server
from tests.explorer.asgi import Answer

# Only what hangs takes as long.
PATIENCE = 60


@contextmanager
def serving(app: Starlette, **limits: Any) -> Iterator[int]:
    """The port. `limits` are those of `ServerConnection`."""
    http = connections()
    for name, value in limits.items():
        assert hasattr(http, name)
        setattr(http, name, value)
    listening = socket.create_server(("127.0.0.1", 0))
    server = Server(app, http)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()


def connect(port: int, sent: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    connection.sendall(sent)
    return connection


def head(method: str, path: str, **headers: object) -> bytes:
    named = {"Host": "127.0.0.1"} | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def response(connection: socket.socket) -> Answer:
    """One, of a connection that may stay open."""
    received = b""
    while b"\r\n\r\n" not in received:
        chunk = connection.recv(65_536)
        assert chunk, f"closed without a response: {received!r}"
        received += chunk
    first, _, body = received.partition(b"\r\n\r\n")
    status, *lines = first.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        chunk = connection.recv(65_536)
        assert chunk
        body += chunk
    return Answer(int(status.split()[1]), headers, body)


def get(port: int, path: str) -> Answer:
    with connect(port, head("GET", path, Connection="close")) as connection:
        return response(connection)


def is_closed(connection: socket.socket) -> bool:
    """Waits for it. What comes before is dropped."""
    try:
        while connection.recv(65_536):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True
