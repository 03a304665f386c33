"""Keeps one connection per address, and opens a new one when it breaks."""

import asyncio
from collections.abc import Callable, Iterable

from kafkascope.client.answer import Answer
from kafkascope.client.opening import Login, log_in, open_connection
from kafkascope.client.settings import Address, Settings
from kafkascope.client.transport.connection import Connection, LostError
from kafkascope.client.transport.deadline import Deadline, within
from kafkascope.client.transport.dialling import UnreachableError
from kafkascope.errors import ReachError, UsageError

# An address, and whether it's the connection for calls that may hang.
_Key = tuple[Address, bool]


class ConnectionPool:
    """`on_versions` gets the ApiVersions response of every new connection. Responses come in order, so calls that must
    not delay others go `apart`, over a second connection to the same address."""

    def __init__(self, settings: Settings, on_versions: Callable[[Answer], None]) -> None:
        self._settings = settings
        self._on_versions = on_versions
        self._connections: dict[_Key, Connection] = {}
        self._locks: dict[_Key, asyncio.Lock] = {}
        self._opening: set[asyncio.Task[Connection]] = set()
        self._closed = False
        # Large responses are read one at a time, over all connections.
        self._large = asyncio.Lock()
        # Not used for new calls; closed when the last pending call has its response.
        self._retired: list[Connection] = []

    def open_addresses(self) -> list[Address]:
        return [
            address for (address, apart), connection in self._connections.items() if _fresh(connection) and not apart
        ]

    def open_connections(self) -> list[tuple[str, Address, int]]:
        """Connections that may still receive a response: our end, theirs, and when each was opened."""
        return [
            (connection.client_address, connection.address, connection.connected_at)
            for connection in (*self._connections.values(), *self._retired)
            if connection.usable or not connection.idle
        ]

    async def get(self, address: Address, deadline: Deadline, *, apart: bool = False) -> Connection:
        """A connection ready for a call. UnreachableError and LostError may be gone at a retry; other errors stay."""
        if self._closed:
            raise _closed_error()
        connection = self._connections.get((address, apart))
        if connection is None or not _fresh(connection):
            connection = await self._open((address, apart), deadline)
        if connection.log_in_at is not None:
            login = Login(str(address))
            async with within(deadline, lambda: login.late(deadline)):
                await self._renew_login(connection, login)
        return connection

    async def any_of(self, addresses: Iterable[Address], deadline: Deadline, *, apart: bool = False) -> Connection:
        """The first connection that succeeds, or the first address's error. An address that hangs leaves time for the
        others."""
        errors: list[ReachError] = []
        remaining = [*dict.fromkeys(addresses)]
        while remaining:
            address = remaining.pop(0)
            share = deadline.half() if remaining else deadline
            try:
                return await self.get(address, share, apart=apart)
            except ReachError as error:
                if not share.passed() and not isinstance(error, UnreachableError | LostError):
                    raise
                errors.append(error)
        unnamed = f" (and {len(errors) - 1} more addresses likewise)" if len(errors) > 1 else ""
        raise (ReachError if deadline.passed() else UnreachableError)(f"{errors[0]}{unnamed}")

    async def close(self) -> None:
        """Closes it for good: later requests for a connection get this error."""
        self._closed = True
        opening = [*self._opening]
        for task in opening:
            task.cancel()
        if opening:
            await asyncio.wait(opening)
        connections = [*self._connections.values(), *self._retired]
        self._connections.clear()
        self._retired.clear()
        await asyncio.gather(*(connection.close() for connection in connections))

    async def _open(self, key: _Key, deadline: Deadline) -> Connection:
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with within(deadline, lambda: f"{key[0]}: no connection within {deadline.seconds:g} s"):
            await lock.acquire()
        try:
            connection = self._connections.get(key)
            if connection is not None:
                if _fresh(connection):
                    return connection
                del self._connections[key]
                self._retired.append(connection)
            await self._close_idle()
            if self._closed:
                raise _closed_error()
            # a task of its own, so that `close` ends half-open connections
            task = asyncio.create_task(self._make(key, deadline), name=f"kafkascope connects to {key[0]}")
            self._opening.add(task)
            try:
                return await task
            except asyncio.CancelledError:
                if self._cancelled_by_close():
                    raise _closed_error() from None
                raise
            finally:
                self._opening.discard(task)
        finally:
            lock.release()

    def _cancelled_by_close(self) -> bool:
        """Whether `close` cancelled a connection attempt, rather than the task that waits for it."""
        ours = asyncio.current_task()
        return self._closed and ours is not None and not ours.cancelling()

    async def _make(self, key: _Key, deadline: Deadline) -> Connection:
        connection = await open_connection(self._settings, key[0], deadline, self._on_versions, self._large)
        self._connections[key] = connection
        return connection

    async def _close_idle(self) -> None:
        gone = [connection for connection in self._retired if connection.idle]
        self._retired = [connection for connection in self._retired if not connection.idle]
        for connection in gone:
            await connection.close()

    async def _renew_login(self, connection: Connection, login: Login) -> None:
        """Nothing may be sent between the frames of a login: other calls wait."""
        async with connection.log_in:
            if connection.log_in_at is not None and asyncio.get_running_loop().time() >= connection.log_in_at:
                await log_in(connection, self._settings, login)


def _closed_error() -> UsageError:
    return UsageError("the cluster is closed: its `async with connect(…)` block has ended; call it inside")


def _fresh(connection: Connection) -> bool:
    """An expired session is unusable: the broker closes the connection at the next request (KIP-368)."""
    expired = connection.log_in_by is not None and asyncio.get_running_loop().time() >= connection.log_in_by
    return connection.usable and not expired
