"""Opens a connection until it's ready for calls: TCP, TLS, ApiVersions, SASL login. An error is one line with the step
that failed, the reason and the fix."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

from kafkascope.client.answer import Answer
from kafkascope.client.settings import Address, Settings
from kafkascope.client.transport.connection import Connection
from kafkascope.client.transport.deadline import Deadline, within
from kafkascope.client.transport.dialling import UnreachableError, check_address, dial
from kafkascope.client.transport.negotiate import negotiate
from kafkascope.errors import ReachError

# Java logs in again after 85 to 95 % of the session, so that clients don't all do it at once (KIP-368).
_AGAIN_FROM, _AGAIN_TO = 0.85, 0.95


@dataclass(slots=True)
class Login:
    """A login in progress: it waits for the broker at `place` or, unless it's None, a token `endpoint`."""

    place: str
    endpoint: str | None = None

    def late(self, limit: Deadline) -> str:
        if self.endpoint is not None:
            reason = f"no token from {self.endpoint} within {limit.seconds:g} s; is the token endpoint up"
            return f"{self.place}: the login waits: {reason}, and is the way to it open?"
        return f"{self.place}: the SASL login didn't finish within {limit.seconds:g} s; is a broker running there?"


async def open_connection(
    settings: Settings,
    address: Address,
    deadline: Deadline,
    on_versions: Callable[[Answer], None],
    large: asyncio.Lock | None = None,
) -> Connection:
    """`on_versions` gets the ApiVersions response; `large` is that of `Connection`."""
    limit = deadline.earlier(settings.connect_timeout)
    check_address(address)
    dialled = dict(settings.resolve).get(address, address)
    place = str(address) if dialled == address else f"{address} (connecting to {dialled})"
    phase = "no connection" if settings.tls is None else "no TLS connection"
    login: Login | None = None

    def late() -> str:
        if login is not None:
            return login.late(limit)
        return f"{place}: {phase} within {limit.seconds:g} s; is a broker running there, and is the way to it open?"

    try:
        async with within(limit, late):
            name = (settings.tls.server_name if settings.tls else None) or address.host
            reader, writer = await dial(dialled, place, settings.tls, name, limit)
            phase = "no response to ApiVersions"
            connection = Connection(
                address,
                reader,
                writer,
                settings.client_id,
                tls=settings.tls is not None,
                sasl=settings.sasl is not None,
                large=large,
            )
            try:
                on_versions(await negotiate(connection))
                login = Login(place)
                await log_in(connection, settings, login)
                connection.logged_in()
            except BaseException:
                await connection.close()
                raise
            return connection
    except ReachError as error:
        if limit.passed() and not deadline.passed():
            raise UnreachableError(str(error)) from None
        raise


async def log_in(connection: Connection, settings: Settings, login: Login) -> None:
    """Logs in with SASL if the settings have it, and again before the session's lifetime ends (KIP-368)."""
    if settings.sasl is None:
        return
    from kafkascope.client.auth.sasl import authenticate

    loop = asyncio.get_running_loop()
    begun = loop.time()

    def waits_for(endpoint: str | None) -> None:
        login.endpoint = endpoint

    lifetime_ms = await authenticate(connection, settings.sasl, waits_for)
    if lifetime_ms:
        connection.log_in_at = begun + lifetime_ms / 1000 * random.uniform(_AGAIN_FROM, _AGAIN_TO)
        connection.log_in_by = begun + lifetime_ms / 1000
    else:
        connection.log_in_at = connection.log_in_by = None
