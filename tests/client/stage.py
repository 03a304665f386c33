"""A small cluster that follows a script: a function answers what a node is asked, and what it leaves is answered as any
broker would."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kafkascope.client import Address, Cluster, Settings, connect
from kafkascope.codec.frame import DecodedFrame
from tests.client.leftovers import run
from tests.client.servers import BROKER, Peer, serving

TOPIC_ID = UUID(int=77)
NO_ANSWER: dict[str, Any] = {}
Script = Callable[[int, DecodedFrame], Mapping[str, Any] | bytes | None]


@dataclass
class Stage:
    """Nodes numbered from 1. `script` answers a node's request, with bytes where they are no response; None leaves it
    to what any broker would say."""

    script: Script
    addresses: dict[int, Address] = field(default_factory=dict)
    # What Metadata says in place of them.
    advertised: dict[int, Address] = field(default_factory=dict)
    controller: int = 1
    leader: int = 1
    coordinator: int = 1
    versions: Mapping[int, tuple[int, int]] = field(default_factory=lambda: BROKER)
    asked: list[tuple[int, str]] = field(default_factory=list)
    connections: Counter[int] = field(default_factory=Counter)

    def times(self, api: str) -> list[int]:
        """The nodes that got such a request, in order."""
        return [node for node, name in self.asked if name == api]

    async def node(self, number: int, peer: Peer) -> None:
        self.connections[number] += 1
        request = await peer.greet(self.versions)
        while True:
            assert request.api is not None
            self.asked.append((number, request.api))
            value = self.script(number, request)
            if value is NO_ANSWER:
                await asyncio.Event().wait()
            if value is None:
                value = self._usual(request)
            if isinstance(value, bytes):
                content = request.correlation_id.to_bytes(4, "big") + value
                await peer.write(len(content).to_bytes(4, "big") + content)
            else:
                await peer.answer(request, value)
            request = await peer.request()

    def _usual(self, request: DecodedFrame) -> Mapping[str, Any]:
        assert request.body is not None
        if request.api == "Metadata":
            return self._metadata(request)
        if request.api == "FindCoordinator":
            place = {"nodeId": self.coordinator} | self.place(self.coordinator)
            if request.version < 4:
                return place
            return {"coordinators": [{"key": key} | place for key in request.body.value["coordinatorKeys"]]}
        return {}

    def _metadata(self, request: DecodedFrame) -> Mapping[str, Any]:
        assert request.body is not None
        topics: list[dict[str, Any]] = []
        for topic in request.body.value["topics"]:
            named = {"name": "orders"} | ({"topicId": TOPIC_ID} if request.version >= 10 else {})
            partition = {"partitionIndex": 0, "leaderId": self.leader}
            if topic["name"] == "orders" or topic.get("topicId") == TOPIC_ID:
                topics.append(named | {"partitions": [partition]})
            else:
                topics.append({"name": topic["name"], "errorCode": 3})
        brokers = [{"nodeId": node} | self.place(node) for node in self.addresses]
        controller = {"controllerId": self.controller} if request.version else {}
        return {"brokers": brokers, "topics": topics} | controller

    def place(self, node: int) -> dict[str, Any]:
        address = self.advertised.get(node, self.addresses[node])
        return {"host": address.host, "port": address.port}


@asynccontextmanager
async def running(stage: Stage, nodes: int, **settings: Any) -> AsyncIterator[Cluster]:
    """Bootstrapped at node 1."""
    async with AsyncExitStack() as stack:
        for number in range(1, nodes + 1):
            stage.addresses[number] = await stack.enter_async_context(serving(handler_of(stage, number)))
        bootstrap = settings.pop("bootstrap", [1])
        stage_settings = Settings(tuple(stage.addresses[node] for node in bootstrap), **settings)
        yield await stack.enter_async_context(connect(stage_settings))


def handler_of(stage: Stage, number: int) -> Callable[[Peer], Awaitable[None]]:
    async def handler(peer: Peer) -> None:
        await stage.node(number, peer)

    return handler


def play(script: Script, use: Callable[[Cluster, Stage], Awaitable[None]], nodes: int = 3, **more: Any) -> Stage:
    known = {name: more.pop(name) for name in ("controller", "leader", "coordinator", "versions") if name in more}
    stage = Stage(script, **known)

    async def work() -> None:
        async with running(stage, nodes, **more) as cluster, asyncio.timeout(30):
            await use(cluster, stage)

    run(work())
    return stage


def nothing_special(_: int, __: DecodedFrame) -> None:
    return None


def offset_fetch(code: int, group: str = "g") -> dict[str, Any]:
    return {"groups": [{"groupId": group, "errorCode": code, "topics": []}]}


OFFSET_FETCH = {"groups": [{"groupId": "g", "topics": None}]}
FETCH = {"topics": [{"topicId": TOPIC_ID, "partitions": [{"partition": 0}]}]}
