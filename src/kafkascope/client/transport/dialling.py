"""Opens TCP or TLS streams. A slow name server never blocks other work."""

import asyncio
import os
import socket
import ssl
import threading
from contextlib import suppress

from kafkascope.client.settings import Address, Tls, sanitize
from kafkascope.client.transport.deadline import Deadline
from kafkascope.errors import ReachError
from kafkascope.limits import MAX_HOST_CHARACTERS

# Reading pauses when this much is unread: responses to admin requests fit.
BUFFER_BYTES = 1_048_576
# TLS closes in both directions; a peer that doesn't gets this long.
CLOSE_SECONDS = 1.0
# Characters shown of an invalid host.
_SHOWN_CHARACTERS = 40

_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class UnreachableError(ReachError):
    """127.0.0.1:9092: connection refused; is a broker running, and is this its port?"""

    # An address that can never be reached.
    final = False


def check_address(address: Address) -> None:
    """UnreachableError if the named address can't be valid. Odd characters aren't shown."""
    problem = ""
    if not 0 < address.port < 65_536:
        problem = f"{address.port} isn't a port; ports are 1 to 65535"
    elif not address.host:
        problem = "the host is empty"
    elif len(address.host) > MAX_HOST_CHARACTERS:
        problem = f"the host has {len(address.host):,} characters; the limit is {MAX_HOST_CHARACTERS}"
    elif not address.host.isprintable():
        problem = "the host has characters that names can't have"
    if problem:
        shown = Address(sanitize(address.host, most=_SHOWN_CHARACTERS), address.port)
        error = UnreachableError(f"{shown}: {problem}; the advertised.listeners of the brokers are wrong")
        error.final = True
        raise error


async def dial(dialled: Address, place: str, tls: Tls | None, name: str, limit: Deadline) -> _Streams:
    """`place` is its name in errors, `name` the name that the certificate must be for. The caller sets the time limit;
    each of several addresses gets a share, so that a dead one doesn't use all of it."""
    try:
        numbers = await look_up(dialled.host, dialled.port)
    except (OSError, UnicodeError) as error:
        reason = (getattr(error, "strerror", None) or "no such name").lower()
        raise UnreachableError(
            f"{place}: the name {dialled.host} can't be resolved ({reason});"
            " fix it, or give --resolve HOST:PORT=ADDRESS"
        ) from None
    for position, number in enumerate(numbers):
        last = position == len(numbers) - 1
        share = limit.left() if last else limit.left() / (len(numbers) - position)
        try:
            async with asyncio.timeout(None if last else share):
                return await _connect(Address(number, dialled.port), place, tls, name, limit)
        except TimeoutError:
            if last:
                raise UnreachableError(
                    f"{place}: nothing responds there; is a firewall blocking the connection?"
                ) from None
        except OSError as error:
            if last:
                raise UnreachableError(
                    f"{place}: {os_error_text(error)}; is a broker running, and is this its port?"
                ) from None
    raise UnreachableError(f"{place}: the name {dialled.host} has no address")


def os_error_text(error: OSError) -> str:
    """The system's own message: asyncio replaces it by the address, and name servers have their own codes."""
    if error.errno is not None and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno).lower()
    return (error.strerror or str(error) or type(error).__name__).lower()


async def _connect(address: Address, place: str, tls: Tls | None, name: str, limit: Deadline) -> _Streams:
    if tls is None:
        return await asyncio.open_connection(address.host, address.port, limit=BUFFER_BYTES)
    from kafkascope.client.transport.tls import context, explain_closer

    try:
        return await asyncio.open_connection(
            address.host,
            address.port,
            limit=BUFFER_BYTES,
            ssl=context(tls),
            server_hostname=name,
            # our own time limit comes first, with a better message
            ssl_handshake_timeout=limit.left() + CLOSE_SECONDS,
            ssl_shutdown_timeout=CLOSE_SECONDS,
        )
    except (ssl.SSLError, ConnectionResetError, ConnectionAbortedError, BrokenPipeError) as error:
        raise ReachError(f"{place}: {await explain_closer(error, tls, address, name)}") from None


async def look_up(host: str, port: int) -> list[str]:
    """The addresses of a name. Uses a daemon thread: asyncio's own would delay the end of the program until the name
    server responds."""
    if is_ip_address(host):
        return [host]
    loop = asyncio.get_running_loop()
    future: asyncio.Future[list[str]] = loop.create_future()

    def settle(numbers: list[str], error: Exception | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(numbers)
        else:
            future.set_exception(error)

    def work() -> None:
        numbers: list[str] = []
        problem: Exception | None = None
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            numbers = list(dict.fromkeys(str(row[4][0]) for row in rows))
        except (OSError, UnicodeError) as error:
            problem = error
        # the loop may be closed if nothing waits any more
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, numbers, problem)

    threading.Thread(target=work, name=f"kafkascope looks up {host}", daemon=True).start()
    return await future


def is_ip_address(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError, ValueError):
            socket.inet_pton(family, host)
            return True
    return False
