"""Implements the client: `await cluster.call(api, value)` finds the node, the version and the connection, and returns
or raises within its deadline. After the `async with` block no task or socket is left."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any
from uuid import UUID

from kafkascope.client.answer import Answer, Broker
from kafkascope.client.argument_types import api_of, seconds_of, settings_of, to_target, value_of
from kafkascope.client.attempts import NO_ANSWER_REASON, Attempts
from kafkascope.client.metadata_cache import MetadataCache, Topic
from kafkascope.client.pool import ConnectionPool
from kafkascope.client.redirects import (
    COORDINATOR_CODES,
    LATER_CODES,
    LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPICS,
    code_to_follow,
)
from kafkascope.client.routing import target_of, uuid_key
from kafkascope.client.settings import Address, Settings
from kafkascope.client.targets import COORDINATOR_KEY_TYPES, AnyBroker, Controller, Coordinator, Leader, Node, Target
from kafkascope.client.transport.connection import Connection, LostError
from kafkascope.client.transport.deadline import Deadline, after, within
from kafkascope.client.transport.dialling import UnreachableError
from kafkascope.client.transport.negotiate import Ranges, choose_version
from kafkascope.client.writes import READS
from kafkascope.errors import DecodeError, NotFoundError, ReachError, RefusedError, UsageError
from kafkascope.formatting import first_names
from kafkascope.limits import MAX_BROKERS, MAX_RESPONSE_MEMORY_BYTES
from kafkascope.schema.errors.error_codes import error_name
from kafkascope.schema.names import clip

_METADATA, _DESCRIBE_CLUSTER = 3, 60
# How long a topic may be unknown to a broker that is still reading the metadata log: to any broker, if the name may be
# wrong, and to its leader, if it's right.
_UNKNOWN_TOPIC_SECONDS = 1.0
_UNKNOWN_TO_LEADER_SECONDS = 5.0
_CONTROLLER_ENDPOINTS = 2
# Responses that list the nodes of a cluster.
_NODE_LISTS = ("Metadata", "DescribeCluster")
# Nodes that an error names.
_FEW_NODES = 20
# For a call at the end of a look.
_MIN_SECONDS = 0.05
# The deadline of the look that the running task is part of.
_TIME_LIMIT: ContextVar[Deadline | None] = ContextVar("kafkascope_look_until", default=None)
# The value of a request, or a function that makes it for the chosen version.
Request = Mapping[str, Any] | Callable[[int], Mapping[str, Any]]


@asynccontextmanager
async def connect(
    settings: Settings | str | Address | Iterable[str | Address],
    *,
    every_answer: Callable[[Answer], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    **overrides: Any,
) -> AsyncIterator["Cluster"]:
    """Takes `Settings`, or addresses as in `bootstrap.servers`; `overrides` replace fields of the settings. Tries each
    address once and raises ReachError if none responds. `on_note` gets a line if brokers are left out."""
    cluster = Cluster(settings_of(settings, overrides), every_answer, on_note)
    try:
        await cluster.open()
        yield cluster
    finally:
        await cluster.close()


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """All calls inside, including `connect` and tasks that are started there, take no longer than this together."""
    deadline, outer = Deadline(after(seconds).at, float(f"{seconds:.2g}")), _TIME_LIMIT.get()
    before = _TIME_LIMIT.set(deadline if outer is None or deadline.at < outer.at else outer)
    try:
        yield
    finally:
        _TIME_LIMIT.reset(before)


class Cluster:
    """Made by `connect`. Calls may run concurrently; those to the same node share a connection. After the block every
    call raises UsageError."""

    def __init__(
        self,
        settings: Settings,
        every_answer: Callable[[Answer], None] | None = None,
        on_note: Callable[[str], None] | None = None,
    ) -> None:
        self.settings = settings
        # Whether the nodes are controllers, by the settings or by their responses.
        self.controllers = settings.controllers
        # Called with every response except those of SASL, including those that routing needs.
        self.every_answer = every_answer
        self.on_note = on_note
        # How many brokers the last list had beyond MAX_BROKERS, and how many the last note named.
        self.left_out = self._noted = 0
        # The memory that responses which are kept together may still take.
        self._memory_left: int | None = None
        self._refreshing = asyncio.Lock()
        self._refreshed = 0
        self._metadata = MetadataCache()
        self._pool = ConnectionPool(settings, self._report_response)
        # Addresses whose last call got no readable response.
        self._unreliable: set[Address] = set()

    async def open(self) -> None:
        if not self.settings.bootstrap:
            raise UsageError("no address is given; write HOST:PORT")
        connection = await self._pool.any_of(self.settings.bootstrap, self._deadline(None))
        brokers = _METADATA in connection.versions
        if self.controllers and brokers:
            raise UsageError(f"{connection.address} is a broker; leave out --bootstrap-controller")
        self.controllers = not brokers and _DESCRIBE_CLUSTER in connection.versions

    async def close(self) -> None:
        await self._pool.close()

    def look(self, seconds: float | None = None) -> AbstractContextManager[None]:
        """All calls inside together take no longer than one call may, or than `seconds`."""
        return time_limit(self.settings.timeout if seconds is None else seconds)

    def late(self) -> bool:
        """Whether the time of the look is over."""
        until = _TIME_LIMIT.get()
        return until is not None and until.passed()

    def part(self) -> AbstractContextManager[None]:
        """For optional calls of a look: they get half of its remaining time, so that some is left for others."""
        return self.look(self.share())

    def share(self) -> float:
        """Seconds for optional calls; outside a look, those for one call."""
        until = _TIME_LIMIT.get()
        return self.settings.timeout if until is None else max(until.left() / 2, _MIN_SECONDS)

    @contextmanager
    def together(self) -> Iterator[None]:
        """All responses inside together take no more memory than one response may."""
        if self._memory_left is not None:
            yield
            return
        self._memory_left = MAX_RESPONSE_MEMORY_BYTES
        try:
            yield
        finally:
            self._memory_left = None

    async def call(
        self,
        api: str,
        value: Mapping[str, Any] | None = None,
        *,
        version: int | None = None,
        to: Target | str | None = None,
        timeout: float | None = None,
        follow: bool = True,
        apart: bool = False,
        on_answer: Callable[[Answer], None] | None = None,
    ) -> Answer:
        """Returns the response, whatever error codes it has. Only errors that ask to retry elsewhere or later are
        followed, until the deadline. A request that changes something is resent only if it surely did not arrive or was
        refused. A call `apart` doesn't delay other calls to its node, however long its response takes."""
        name = api_of(api)
        request = value_of(value)
        target = to_target(to) or target_of(name, request, controllers=self.controllers)
        deadline = self._deadline(timeout)
        attempts = Attempts(name, deadline)
        metadata_deadline = deadline.earlier(_UNKNOWN_TO_LEADER_SECONDS)
        retried_at_once = False
        if deadline.passed():
            raise ReachError(f"{name}: no time was left; --timeout SECONDS waits longer")
        while True:
            sent = False
            try:
                connection = await self._connection(target, deadline, apart=apart)
                sent = True
                response = await self._ask(connection, name, version, request, self._limit(name, target, deadline))
            except ReachError as error:
                if sent and name not in READS and isinstance(error, LostError):
                    reason = attempts.with_timeout(str(error)) if str(error).endswith(NO_ANSWER_REASON) else error
                    raise ReachError(
                        f"{reason}; the request may have been carried out: check before sending it again"
                    ) from None
                await attempts.failed(error)
            else:
                if self._memory_left is not None:
                    self._memory_left -= response.memory
                if on_answer is not None:
                    on_answer(response)
                code = code_to_follow(name, target, response.value) if follow else None
                if code is None or (code in UNKNOWN_TOPICS and metadata_deadline.passed()):
                    return response
                if code not in LATER_CODES and not self._metadata.learn_moved(target, response.value):
                    self._metadata.forget(target)
                elif code not in LATER_CODES and not retried_at_once:
                    # at once, but not forever: two nodes may each name the other
                    retried_at_once = True
                    continue
                await attempts.retry(
                    f"{name} v{response.api_version} at {response.address}: {error_name(code)} ({code})"
                )

    async def call_node(
        self, api: str, request: Callable[[int], Mapping[str, Any]], node: int, *, timeout: float | None = None
    ) -> Answer:
        """One try at one node, over the connection for calls that may take long. `request` returns the request for the
        version that was chosen; nothing is followed, but the addresses of nodes that the response names are learned."""
        name, deadline = api_of(api), self._deadline(timeout)
        connection = await self._connection(Node(node), deadline, apart=True)
        response = await self._ask(connection, name, None, request, deadline)
        self._metadata.learn_endpoints(response.value.get("nodeEndpoints") or [])
        return response

    async def send_bytes(self, frame: bytes, *, to: Target | str | None = None, timeout: float | None = None) -> bytes:
        """Sends a request's header and body unchanged, and returns those of the response, without lengths. Follows no
        errors."""
        deadline = self._deadline(timeout)
        connection = await self._connection(to_target(to) or AnyBroker(), deadline)
        late = f"{connection.address}: no response to {len(frame)} bytes within {deadline.seconds:g} s"
        async with within(deadline, lambda: late):
            return await connection.send(frame)

    async def versions(self, node: int | None = None) -> Ranges:
        """The versions that this node, or any, serves: API key to (first, last)."""
        target = AnyBroker() if node is None else Node(node)
        return (await self._connection_with_retries(target, self._deadline(None))).versions

    def open_connections(self) -> list[tuple[str, Address, int]]:
        """Open connections, as in `client_address`, `address` and `connected_at` of an `Answer`."""
        return self._pool.open_connections()

    async def brokers(self) -> tuple[Broker, ...]:
        """The current nodes by node id: brokers, or controllers if the cluster was reached by them."""
        await self._refresh(self._deadline(None))
        return tuple(self._metadata.brokers[node] for node in sorted(self._metadata.brokers))

    async def controller(self) -> int | None:
        """The active controller's node id. Brokers without ZooKeeper name one of themselves here (KIP-500)."""
        await self._refresh(self._deadline(None))
        return self._metadata.controller

    async def cluster_id(self) -> str | None:
        if self._metadata.cluster_id is None:
            await self._refresh(self._deadline(None))
        return self._metadata.cluster_id

    async def topic_id(self, name: str) -> UUID:
        """RefusedError if the topic doesn't exist, or the brokers are too old for ids (2.8)."""
        topic_id = self._metadata.topic_ids.get(name)
        if topic_id is None:
            await self._look_up_topic(name, self._deadline(None))
            topic_id = self._metadata.topic_ids.get(name)
        if topic_id is None:
            raise NotFoundError(f"topic {clip(name)} has no id; brokers have topic ids since 2.8")
        return topic_id

    async def topic_name(self, topic_id: UUID) -> str:
        name = self._metadata.topic_names.get(topic_id)
        if name is None:
            await self._look_up_topic(topic_id, self._deadline(None))
            name = self._metadata.topic_names.get(topic_id)
        if name is None:
            raise NotFoundError(f"no topic has the id {uuid_key(topic_id)}")
        return name

    def _deadline(self, timeout: float | None) -> Deadline:
        deadline = after(self.settings.timeout if timeout is None else seconds_of(timeout, "timeout"))
        until = _TIME_LIMIT.get()
        return deadline if until is None or deadline.at < until.at else until

    def _report_response(self, response: Answer) -> None:
        if self.every_answer is not None and response.request_bytes:
            self.every_answer(response)

    def _limit(self, api: str, target: Target, deadline: Deadline) -> Deadline:
        """If a node hangs, another one may respond instead, while there is time."""
        has_others = len(self._candidates()) > 1
        patient = not has_others or not isinstance(target, AnyBroker) or api not in READS
        return deadline if patient else deadline.half()

    async def _ask(
        self, connection: Connection, api: str, version: int | None, value: Request, deadline: Deadline
    ) -> Answer:
        chosen = choose_version(api, version, connection)
        place = f"{api} v{chosen} at {connection.address}"
        try:
            async with within(deadline, lambda: f"{place}: {NO_ANSWER_REASON}"):
                request = value(chosen) if callable(value) else value
                response = await connection.call(api, chosen, request, self._memory_limit)
        except ReachError as error:
            self._lost(connection)
            lost = LostError(f"{api} v{chosen} at {error}" if isinstance(error, LostError) else str(error))
            if isinstance(error, LostError):
                lost.early, lost.final = error.early, error.final
            raise lost from None
        except DecodeError:
            self._unreliable.add(connection.address)
            raise
        self._unreliable.discard(connection.address)
        response = replace(response, node=self._metadata.node_at(connection.address))
        self._report_response(response)
        self._note_left_out(response)
        return response

    def _memory_limit(self) -> int:
        """The memory for the next response."""
        return MAX_RESPONSE_MEMORY_BYTES if self._memory_left is None else max(self._memory_left, 0)

    def _note_left_out(self, response: Answer) -> None:
        if response.api in _NODE_LISTS:
            self.left_out = response.left_out
        if self.on_note is not None and response.left_out > self._noted:
            self._noted = response.left_out
            self.on_note(
                f"{response.api} v{response.api_version} at {response.address} names"
                f" {response.left_out + MAX_BROKERS:,} brokers; {response.left_out:,} of them are left out,"
                f" after the first {MAX_BROKERS:,}"
            )

    def _lost(self, connection: Connection) -> None:
        self._unreliable.add(connection.address)
        node = self._metadata.node_at(connection.address)
        if node is not None:
            self._metadata.forget_node(node)

    async def _ask_any(self, api: str, value: Request, deadline: Deadline) -> Answer:
        """For calls that routing itself needs; one attempt."""
        connection = await self._connection(AnyBroker(), deadline)
        return await self._ask(connection, api, None, value, self._limit(api, AnyBroker(), deadline))

    async def _connection_with_retries(self, target: Target, deadline: Deadline) -> Connection:
        attempts = Attempts("ApiVersions", deadline)
        while True:
            try:
                return await self._connection(target, deadline)
            except ReachError as error:
                await attempts.failed(error)

    async def _connection(self, target: Target, deadline: Deadline, *, apart: bool = False) -> Connection:
        """UnreachableError and LostError if a retry may succeed."""
        if isinstance(target, AnyBroker):
            return await self._pool.any_of(self._candidates(), deadline, apart=apart)
        node = target.id if isinstance(target, Node) else await self._node(target, deadline)
        if node not in self._metadata.brokers:
            await self._refresh_once(deadline)
        broker = self._metadata.brokers.get(node)
        if broker is None:
            nodes = _node_list(sorted(self._metadata.brokers))
            if node not in self._metadata.seen:
                raise NotFoundError(f"this cluster has no node {node}; its nodes are {nodes}")
            raise UnreachableError(f"node {node} has left the cluster (its nodes are {nodes})")
        try:
            return await self._pool.get(broker.address, deadline, apart=apart)
        except (UnreachableError, LostError) as error:
            self._metadata.forget_node(node)
            lost = UnreachableError(f"node {node} at {error}")
            lost.final = isinstance(error, UnreachableError) and error.final
            raise lost from None

    def _candidates(self) -> list[Address]:
        """Open connections first, then the given addresses, since only those may lead through a tunnel, then the
        addresses that the cluster names. Addresses that failed last come last."""
        advertised = [broker.address for broker in self._metadata.brokers.values()]
        addresses = dict.fromkeys([*self._pool.open_addresses(), *self.settings.bootstrap, *advertised])
        return sorted(addresses, key=self._unreliable.__contains__)

    async def _node(self, target: Leader | Coordinator | Controller, deadline: Deadline) -> int:
        if isinstance(target, Controller):
            if self._metadata.controller is None:
                await self._refresh_once(deadline)
            if self._metadata.controller is None:
                raise UnreachableError("the cluster has no active controller at the moment")
            return self._metadata.controller
        if self.controllers:
            raise UsageError(f"only brokers know {target}; give a broker's address")
        return await (
            self._leader(target, deadline) if isinstance(target, Leader) else self._coordinator(target, deadline)
        )

    async def _leader(self, target: Leader, deadline: Deadline) -> int:
        leader = self._metadata.leaders.get((target.topic, target.partition))
        if leader is None:
            await self._look_up_topic(target.topic, deadline, target.partition)
            leader = self._metadata.leaders.get((target.topic, target.partition))
        if leader is None:
            raise UnreachableError(f"{self._topic_label(target.topic)}-{target.partition} has no leader at the moment")
        return leader

    async def _look_up_topic(self, topic: Topic, deadline: Deadline, partition: int | None = None) -> None:
        """Metadata of one topic. RefusedError if the brokers refuse for longer than metadata takes to spread."""
        patience = deadline.earlier(_UNKNOWN_TOPIC_SECONDS)
        attempts = Attempts("Metadata", deadline)
        while True:
            try:
                response = await self._ask_any("Metadata", lambda version: _metadata_request(topic, version), deadline)
            except ReachError as error:
                await attempts.failed(error)
                continue
            self._metadata.learn_metadata(response.value)
            rows = response.value["topics"]
            code = rows[0]["errorCode"] if rows else 3
            numbers = [row["partitionIndex"] for row in rows[0]["partitions"]] if rows else []
            place = f"Metadata v{response.api_version} at {response.address}: topic {self._topic_label(topic)}"
            if code == 0 and (partition is None or partition in numbers):
                return
            if code not in (0, LEADER_NOT_AVAILABLE) and (code not in UNKNOWN_TOPICS or patience.passed()):
                raise RefusedError(f"{place}: {error_name(code)} ({code})", code)
            if code == 0 and patience.passed():
                raise RefusedError(f"{place} has {len(numbers)} partitions, but no partition {partition}", 3)
            await attempts.retry(f"{place}: {error_name(code)} ({code})")

    def _topic_label(self, topic: Topic) -> str:
        """Its name if known, or the id in Kafka's form."""
        return clip(topic) if isinstance(topic, str) else self._metadata.topic_names.get(topic) or uuid_key(topic)

    async def _coordinator(self, target: Coordinator, deadline: Deadline) -> int:
        node = self._metadata.coordinators.get(target)
        if node is not None and node in self._metadata.brokers:
            return node
        connection = await self._connection(AnyBroker(), deadline)
        version = choose_version("FindCoordinator", None, connection)
        key_type = COORDINATOR_KEY_TYPES[target.kind]
        if version < (0, 1, 6)[key_type]:
            raise NotFoundError(f"{connection.address} has no {target.kind} coordinators (FindCoordinator v{version})")
        typed: dict[str, Any] = {"keyType": key_type} if version >= 1 else {}
        key_fields = {"coordinatorKeys": [target.key]} if version >= 4 else {"key": target.key}
        limit = self._limit("FindCoordinator", AnyBroker(), deadline)
        response = await self._ask(connection, "FindCoordinator", version, key_fields | typed, limit)
        row = response.value if version < 4 else next(iter(response.value["coordinators"]), None)
        if row is None:
            place = f"FindCoordinator v{version} at {response.address}: {target.kind} {clip(target.key)}"
            raise RefusedError(f"{place}: the response has no coordinator", -1)
        code = row["errorCode"]
        if code in COORDINATOR_CODES:
            raise UnreachableError(f"FindCoordinator v{version} at {response.address}: {error_name(code)} ({code})")
        if code != 0:
            place = f"FindCoordinator v{version} at {response.address}: {target.kind} {clip(target.key)}"
            raise RefusedError(f"{place}: {error_name(code)} ({code})", code)
        if not self._metadata.brokers:
            await self._refresh_once(deadline)
        self._metadata.learn_coordinator(target, row)
        node = row["nodeId"]
        assert isinstance(node, int)
        return node

    async def _refresh(self, deadline: Deadline) -> None:
        attempts = Attempts("DescribeCluster" if self.controllers else "Metadata", deadline)
        while True:
            try:
                return await self._refresh_once(deadline)
            except ReachError as error:
                await attempts.failed(error)

    async def _refresh_once(self, deadline: Deadline) -> None:
        """Concurrent calls share one request."""
        before = self._refreshed
        async with within(deadline, lambda: f"the list of nodes: {NO_ANSWER_REASON}"):
            await self._refreshing.acquire()
        try:
            if self._refreshed == before:
                await self._list_nodes(deadline)
                self._refreshed += 1
        finally:
            self._refreshing.release()

    async def _list_nodes(self, deadline: Deadline) -> None:
        if not self.controllers:
            response = await self._ask_any("Metadata", {"topics": []}, deadline)
            self._metadata.learn_metadata(response.value)
            return
        response = await self._ask_any("DescribeCluster", {"endpointType": _CONTROLLER_ENDPOINTS}, deadline)
        code = response.value["errorCode"]
        if code != 0:
            raise RefusedError(f"DescribeCluster at {response.address}: {error_name(code)} ({code})", code)
        self._metadata.learn_cluster(response.value)


def _node_list(nodes: list[int]) -> str:
    return first_names(list(map(str, nodes)), _FEW_NODES)


def _metadata_request(topic: Topic, version: int) -> dict[str, Any]:
    """Looking never creates the topic, except on brokers before 0.11 (Metadata v4), which follow their
    configuration."""
    quiet = {"allowAutoTopicCreation": False} if version >= 4 else {}
    if isinstance(topic, str):
        return {"topics": [{"name": topic}], **quiet}
    if version < 12:
        reason = f"brokers before 3.1 (Metadata v{version}) only know topics by name"
        raise NotFoundError(f"topic id {uuid_key(topic)}: {reason}")
    return {"topics": [{"name": None, "topicId": topic}], **quiet}
