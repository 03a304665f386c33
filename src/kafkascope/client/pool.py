"""Addresses in, connections out: one for each address, kept while it works, made again when it does not."""

import asyncio
from collections.abc import Callable, Iterable

from kafkascope.client.answer import Answer
from kafkascope.client.opening import Login, log_in, open_connection
from kafkascope.client.settings import Address, Settings
from kafkascope.client.transport.connection import Connection, LostError
from kafkascope.client.transport.deadline import Deadline, within
from kafkascope.client.transport.dialling import UnreachableError
from kafkascope.errors import ReachError, UsageError

# An address, and whether it is the connection for calls that may hang there.
Key = tuple[Address, bool]


class Pool:
    """`seen` gets the ApiVersions answer of every connection that is made. Answers come in order, so calls that others
    must not wait for go `apart`: over a second connection to the same address."""

    def __init__(self, settings: Settings, seen: Callable[[Answer], None]) -> None:
        self._settings = settings
        self._seen = seen
        self._connections: dict[Key, Connection] = {}
        self._locks: dict[Key, asyncio.Lock] = {}
        self._opening: set[asyncio.Task[Connection]] = set()
        self._closed = False
        # Large responses come one at a time, over all connections.
        self._large = asyncio.Lock()
        # No longer used for new calls; closed as soon as the last one under way has its answer.
        self._leaving: list[Connection] = []

    def open_addresses(self) -> list[Address]:
        return [
            address for (address, apart), connection in self._connections.items() if _fresh(connection) and not apart
        ]

    def open_connections(self) -> list[tuple[str, Address, int]]:
        """Those that a response may still come over: our end, theirs, and when it was made."""
        return [
            (connection.client_address, connection.address, connection.connected_at)
            for connection in (*self._connections.values(), *self._leaving)
            if connection.usable or not connection.idle
        ]

    async def get(self, address: Address, deadline: Deadline, *, apart: bool = False) -> Connection:
        """Ready for a call. UnreachableError and LostError may be gone at the next try; other errors stay."""
        if self._closed:
            raise _over()
        connection = self._connections.get((address, apart))
        if connection is None or not _fresh(connection):
            connection = await self._open((address, apart), deadline)
        if connection.log_in_at is not None:
            login = Login(str(address))
            async with within(deadline, lambda: login.late(deadline)):
                await self._log_in_again(connection, login)
        return connection

    async def any_of(self, addresses: Iterable[Address], deadline: Deadline, *, apart: bool = False) -> Connection:
        """The first that can be had; the first one's error when none can. One that hangs leaves time for the others."""
        errors: list[ReachError] = []
        left = [*dict.fromkeys(addresses)]
        while left:
            address = left.pop(0)
            share = deadline.half() if left else deadline
            try:
                return await self.get(address, share, apart=apart)
            except ReachError as error:
                if not share.passed() and not isinstance(error, UnreachableError | LostError):
                    raise
                errors.append(error)
        more = f" (and {len(errors) - 1} more addresses likewise)" if len(errors) > 1 else ""
        raise (ReachError if deadline.passed() else UnreachableError)(f"{errors[0]}{more}")

    async def close(self) -> None:
        """For good: whoever asks for a connection afterwards is told."""
        self._closed = True
        opening = [*self._opening]
        for task in opening:
            task.cancel()
        if opening:
            await asyncio.wait(opening)
        connections = [*self._connections.values(), *self._leaving]
        self._connections.clear()
        self._leaving.clear()
        await asyncio.gather(*(connection.close() for connection in connections))

    async def _open(self, key: Key, deadline: Deadline) -> Connection:
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with within(deadline, lambda: f"{key[0]}: no connection within {deadline.seconds:g} s"):
            await lock.acquire()
        try:
            connection = self._connections.get(key)
            if connection is not None:
                if _fresh(connection):
                    return connection
                del self._connections[key]
                self._leaving.append(connection)
            await self._see_off()
            if self._closed:
                raise _over()
            # a task of its own, so that `close` ends what is half open
            task = asyncio.create_task(self._make(key, deadline), name=f"kafkascope connects to {key[0]}")
            self._opening.add(task)
            try:
                return await task
            except asyncio.CancelledError:
                if self._ended_it():
                    raise _over() from None
                raise
            finally:
                self._opening.discard(task)
        finally:
            lock.release()

    def _ended_it(self) -> bool:
        """Whether a connection under way was cancelled by `close`, not together with whoever waits for it."""
        ours = asyncio.current_task()
        return self._closed and ours is not None and not ours.cancelling()

    async def _make(self, key: Key, deadline: Deadline) -> Connection:
        connection = await open_connection(self._settings, key[0], deadline, self._seen, self._large)
        self._connections[key] = connection
        return connection

    async def _see_off(self) -> None:
        gone = [connection for connection in self._leaving if connection.idle]
        self._leaving = [connection for connection in self._leaving if not connection.idle]
        for connection in gone:
            await connection.close()

    async def _log_in_again(self, connection: Connection, login: Login) -> None:
        """Nothing may be sent between the frames of a login: whoever comes meanwhile waits."""
        async with connection.log_in:
            if connection.log_in_at is not None and asyncio.get_running_loop().time() >= connection.log_in_at:
                await log_in(connection, self._settings, login)


def _over() -> UsageError:
    return UsageError("the cluster is closed: its `async with connect(…)` block has ended; call it inside")


def _fresh(connection: Connection) -> bool:
    """A session that has run out is not worth a try: the broker hangs up at the next request (KIP-368)."""
    expired = connection.log_in_by is not None and asyncio.get_running_loop().time() >= connection.log_in_by
    return connection.usable and not expired
