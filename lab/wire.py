"""Sends one request on one connection, enough to ask a node how it is."""

import socket
import time
from collections.abc import Callable
from typing import Any, TypeVar

from kafkascope import decode_frame, encode_frame

T = TypeVar("T")

_CALL_SECONDS = 5.0
_PAUSE_SECONDS = 0.05


def call(address: str, api: str, version: int, value: dict[str, Any]) -> dict[str, Any]:
    """OSError if the node doesn't respond."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), _CALL_SECONDS) as link:
        link.sendall(encode_frame(f"{api}Request", version, value, {"clientId": "lab"}))
        size = _take(link, 4)
        frame = decode_frame(size + _take(link, int.from_bytes(size, "big")), response_to=(api, version))
    if frame.body is None:
        raise RuntimeError(f"{api} v{version}: {frame.reasons}")
    answer: dict[str, Any] = frame.body.value
    return answer


def _take(link: socket.socket, count: int) -> bytes:
    taken = b""
    while len(taken) < count:
        chunk = link.recv(count - len(taken))
        if not chunk:
            raise ConnectionError(f"connection closed, {count - len(taken)} of {count} bytes missing")
        taken += chunk
    return taken


def until(label: str, ask: Callable[[], T | None], seconds: float) -> T:
    """The first true result; TimeoutError with `what` when none came in time."""
    deadline = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise TimeoutError(f"{label}: not within {seconds:g} s")
        time.sleep(_PAUSE_SECONDS)
