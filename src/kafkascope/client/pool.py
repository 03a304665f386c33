"""Addresses in, connections out: one for each address, kept while it works, made again when it does not."""

import asyncio
from collections.abc import Callable, Iterable

from kafkascope.client.answer import Answer
from kafkascope.client.connection import Connection, LostError
from kafkascope.client.dialling import UnreachableError
from kafkascope.client.opening import log_in, open_connection
from kafkascope.client.retries import Deadline, within
from kafkascope.client.settings import Address, Settings


class Pool:
    """`seen` gets the ApiVersions answer of every connection that is made."""

    def __init__(self, settings: Settings, seen: Callable[[Answer], None]) -> None:
        self._settings = settings
        self._seen = seen
        self._connections: dict[Address, Connection] = {}
        self._locks: dict[Address, asyncio.Lock] = {}
        # No longer used for new calls; closed as soon as the last one under way has its answer.
        self._leaving: list[Connection] = []

    def open_addresses(self) -> list[Address]:
        return [address for address, connection in self._connections.items() if _fresh(connection)]

    async def get(self, address: Address, deadline: Deadline) -> Connection:
        """Ready for a call. UnreachableError and LostError may be gone at the next try; other errors stay."""
        connection = self._connections.get(address)
        if connection is None or not _fresh(connection):
            connection = await self._open(address, deadline)
        if connection.log_in_at is not None:
            async with within(deadline, lambda: f"{address}: no end of the SASL login within {deadline.seconds:g} s"):
                await self._log_in_again(connection)
        return connection

    async def any_of(self, addresses: Iterable[Address], deadline: Deadline) -> Connection:
        """The first that can be had; the first one's error when none can."""
        errors: list[UnreachableError | LostError] = []
        for address in dict.fromkeys(addresses):
            try:
                return await self.get(address, deadline)
            except (UnreachableError, LostError) as error:
                errors.append(error)
        more = f" (and {len(errors) - 1} more addresses likewise)" if len(errors) > 1 else ""
        raise UnreachableError(f"{errors[0]}{more}")

    async def close(self) -> None:
        connections = [*self._connections.values(), *self._leaving]
        self._connections.clear()
        self._leaving.clear()
        await asyncio.gather(*(connection.close() for connection in connections))

    async def _open(self, address: Address, deadline: Deadline) -> Connection:
        lock = self._locks.setdefault(address, asyncio.Lock())
        async with within(deadline, lambda: f"{address}: no connection within {deadline.seconds:g} s"):
            await lock.acquire()
        try:
            connection = self._connections.get(address)
            if connection is not None:
                if _fresh(connection):
                    return connection
                del self._connections[address]
                self._leaving.append(connection)
            await self._see_off()
            connection = await open_connection(self._settings, address, deadline, self._seen)
            self._connections[address] = connection
            return connection
        finally:
            lock.release()

    async def _see_off(self) -> None:
        gone = [connection for connection in self._leaving if connection.idle]
        self._leaving = [connection for connection in self._leaving if not connection.idle]
        for connection in gone:
            await connection.close()

    async def _log_in_again(self, connection: Connection) -> None:
        """Nothing may be sent between the frames of a login: whoever comes meanwhile waits."""
        async with connection.log_in:
            if connection.log_in_at is not None and asyncio.get_running_loop().time() >= connection.log_in_at:
                await log_in(connection, self._settings)


def _fresh(connection: Connection) -> bool:
    """A session that has run out is not worth a try: the broker hangs up at the next request (KIP-368)."""
    expired = connection.log_in_by is not None and asyncio.get_running_loop().time() >= connection.log_in_by
    return connection.usable and not expired
