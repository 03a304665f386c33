"""Posts a form over HTTP/1.1 on its own connection and returns the status and body, within the caller's time limit."""

import asyncio
import ssl
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from kafkascope.client.settings import Tls
from kafkascope.client.transport.dialling import os_error_text
from kafkascope.errors import ReachError, UsageError
from kafkascope.limits import MAX_TOKEN_ANSWER_BYTES

_PORTS = {"http": 80, "https": 443}
_CLOSE_SECONDS = 1.0


class Reply(NamedTuple):
    status: int
    body: bytes


async def post_form(url: str, form: Mapping[str, str], headers: Mapping[str, str], tls: Tls) -> Reply:
    """Errors name the place without its query, which may contain a secret."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        port = 0
    if not port or not parts.hostname or any(ord(character) <= 32 for character in url):
        raise UsageError("the token endpoint isn't an http or https URL")
    if parts.username is not None:
        raise UsageError(
            "the token endpoint's URL contains a user; use --token-client-id and --token-client-secret-file instead"
        )
    place = f"{parts.scheme}://{parts.hostname}:{port}{parts.path}"
    body = urlencode(form).encode()
    head = {
        "Host": parts.netloc,
        "Accept": "application/json",
        "Content-Type": "application/x-www-form-urlencoded",
        "Content-Length": str(len(body)),
        "Connection": "close",
        **headers,
    }
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    request = f"POST {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in head.items()) + "\r\n"
    reader, writer = await _dial(parts.hostname, port, tls if parts.scheme == "https" else None, place)
    try:
        writer.write(request.encode("latin-1", "replace") + body)
        await writer.drain()
        return await _reply(reader)
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        raise ReachError(f"{place}: the token endpoint sent no complete HTTP response") from None
    finally:
        writer.close()
        # aborted, so that no socket outlives the login
        writer.transport.abort()


async def _dial(host: str, port: int, tls: Tls | None, place: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if tls is None:
        try:
            return await asyncio.open_connection(host, port, limit=MAX_TOKEN_ANSWER_BYTES)
        except OSError as error:
            raise ReachError(f"{place}: the token endpoint is not reached: {os_error_text(error)}") from None
    from kafkascope.client.transport.tls import context, explain_endpoint

    try:
        return await asyncio.open_connection(
            host, port, ssl=context(tls), limit=MAX_TOKEN_ANSWER_BYTES, ssl_shutdown_timeout=_CLOSE_SECONDS
        )
    except ssl.SSLError as error:
        raise ReachError(f"{place}: the token endpoint: {explain_endpoint(error, host)}") from None
    except OSError as error:
        raise ReachError(f"{place}: the token endpoint is not reached: {os_error_text(error)}") from None


async def _reply(reader: asyncio.StreamReader) -> Reply:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    protocol, _, status_line = lines[0].partition(" ")
    if not protocol.startswith("HTTP/1."):
        raise ValueError(protocol)
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    status = int(status_line[:3])
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return Reply(status, await _chunks(reader))
    if "content-length" in headers:
        return Reply(status, await reader.readexactly(_length(headers["content-length"], 10)))
    return Reply(status, await _rest(reader))


async def _rest(reader: asyncio.StreamReader) -> bytes:
    """Reads until the server closes."""
    body = b""
    while part := await reader.read(MAX_TOKEN_ANSWER_BYTES):
        body += part
        if len(body) > MAX_TOKEN_ANSWER_BYTES:
            raise ValueError(len(body))
    return body


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := _length((await reader.readuntil(b"\r\n")).split(b";")[0].decode("latin-1"), 16):
        if len(body) + size > MAX_TOKEN_ANSWER_BYTES:
            raise ValueError(size)
        body += await reader.readexactly(size)
        await reader.readuntil(b"\r\n")
    return body


def _length(text: str, base: int) -> int:
    length = int(text.strip(), base)
    if not 0 <= length <= MAX_TOKEN_ANSWER_BYTES:
        raise ValueError(length)
    return length
