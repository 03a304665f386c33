"""An address in, a connection that is ready for calls out: dialled, TLS, versions known, logged in. What fails is one
line that says how far it came, what was found and the fix."""

import asyncio
import random
from collections.abc import Callable

from kafkascope.client.answer import Answer
from kafkascope.client.connection import Connection
from kafkascope.client.dialling import UnreachableError, dial
from kafkascope.client.negotiate import negotiate
from kafkascope.client.retries import Deadline, within
from kafkascope.client.settings import Address, Settings
from kafkascope.errors import ReachError

# Java logs in again after 85 to 95 % of the session, so that clients do not all do it at once (KIP-368).
_AGAIN_FROM, _AGAIN_TO = 0.85, 0.95


async def open_connection(
    settings: Settings, address: Address, deadline: Deadline, seen: Callable[[Answer], None]
) -> Connection:
    """`seen` gets the ApiVersions answer."""
    limit = deadline.earlier(settings.connect_timeout)
    dialled = dict(settings.resolve).get(address, address)
    place = str(address) if dialled == address else f"{address} (dialled at {dialled})"
    phase = "no connection" if settings.tls is None else "no TLS connection"

    def late() -> str:
        return f"{place}: {phase} within {limit.seconds:g} s; is a broker up there, and does nothing block the way?"

    try:
        async with within(limit, late):
            name = (settings.tls.server_name if settings.tls else None) or address.host
            reader, writer = await dial(dialled, place, settings.tls, name, limit)
            phase = "no answer to ApiVersions"
            connection = Connection(
                address,
                reader,
                writer,
                settings.client_id,
                tls=settings.tls is not None,
                sasl=settings.sasl is not None,
            )
            try:
                seen(await negotiate(connection))
                phase = "no end of the SASL login"
                await log_in(connection, settings)
            except BaseException:
                await connection.close()
                raise
            return connection
    except ReachError as error:
        if limit.passed() and not deadline.passed():
            raise UnreachableError(str(error)) from None
        raise


async def log_in(connection: Connection, settings: Settings) -> None:
    """By SASL, where the settings say so; again when the session's lifetime asks for it (KIP-368)."""
    if settings.sasl is None:
        return
    from kafkascope.client.sasl import authenticate

    loop = asyncio.get_running_loop()
    begun = loop.time()
    lifetime_ms = await authenticate(connection, settings.sasl)
    if lifetime_ms:
        connection.log_in_at = begun + lifetime_ms / 1000 * random.uniform(_AGAIN_FROM, _AGAIN_TO)
        connection.log_in_by = begun + lifetime_ms / 1000
    else:
        connection.log_in_at = connection.log_in_by = None
