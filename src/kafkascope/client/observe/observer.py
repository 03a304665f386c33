"""A cluster in, everything that an observer asks of it once out: every answer with its bytes and times, and what was
asked in vain. A poll never raises for what brokers say or fail to say."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from kafkascope.client.answer import Answer
from kafkascope.client.describe.calls import map_fairly, map_limited
from kafkascope.client.describe.quorum import QUORUM_REQUEST as QUORUM
from kafkascope.client.targets import AnyBroker, Node, Target
from kafkascope.errors import KafkascopeError, ReachError
from kafkascope.limits import MAX_OBSERVED_GROUPS_A_CALL
from kafkascope.schema.catalog import apis
from kafkascope.schema.names import matches

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

T = TypeVar("T")

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
# What is asked of the groups of each type: the description, then what lag is reckoned from.
DESCRIBES = {
    SHARE: "ShareGroupDescribe",
    STREAMS: "StreamsGroupDescribe",
    CONSUMER: "ConsumerGroupDescribe",
    CLASSIC: "DescribeGroups",
}
# From version 10 on OffsetFetch knows topics by their ids alone (KIP-848); names need no lookup. Before version 8 it is
# about one group (KIP-709).
FIRST_OFFSET_FETCH, LAST_OFFSET_FETCH = 8, 9
LATEST = -1
# Calls to an API in vain that are told one by one in a poll: nodes that are gone differ in their address alone.
MOST_VAIN = 10


@dataclass(frozen=True, slots=True)
class Vain:
    """A call that got no answer: when, what was asked, and why as one line. `reached` is True where the cluster is
    there and cannot be asked that."""

    at: int
    api: str
    detail: str
    reached: bool = False


@dataclass(slots=True)
class Poll:
    """What came of one round. Times are nanoseconds since the epoch."""

    at: int
    answers: list[Answer] = field(default_factory=list)
    vain: list[Vain] = field(default_factory=list)
    groups: int = 0
    brokers: int = 0

    @property
    def reached(self) -> bool:
        return bool(self.answers)


class Observer:
    """`groups` are ids or patterns with `*` and `?`; none is all. `timeout` is for one call, in seconds. `early` are
    answers from connecting; they go with the first poll."""

    def __init__(
        self,
        cluster: "Cluster",
        groups: Sequence[str] = (),
        timeout: float | None = None,
        early: list[Answer] | None = None,
    ) -> None:
        self._cluster = cluster
        self._early = early if early is not None else []
        self._groups = tuple(groups)
        self._timeout = timeout
        self._poll = Poll(0)
        self._told: set[str] = set()
        # Calls in vain of a poll, by API.
        self._silent: Counter[str] = Counter()

    async def poll(self, into: Poll | None = None) -> Poll:
        """`into` is filled as answers come, so that a poll that is cut short leaves what it had."""
        self._poll = poll = Poll(time.time_ns()) if into is None else into
        poll.answers += self._early
        self._early.clear()
        self._cluster.every_answer = poll.answers.append
        self._silent.clear()
        with self._cluster.look(), self._cluster.together():
            await self._round()
        for api, silent in self._silent.items():
            if silent > MOST_VAIN:
                told = f"{api}: {silent - MOST_VAIN:,} more calls got no answer"
                poll.vain.append(Vain(poll.at, api, told))
        return poll

    def open_connections(self) -> frozenset[tuple[str, str, int]]:
        """Those that later polls may go on with, between two polls."""
        return frozenset((own, str(address), at) for own, address, at in self._cluster.open_connections())

    async def _round(self) -> None:
        # The first call tells whether anybody is there: one wait for a cluster that is gone, not one for each question.
        nodes = await self._who()
        served = await self._try("ApiVersions", self._cluster.versions()) if nodes is not None else None
        if nodes is None or served is None:
            return
        keys = {name: key for key, name in apis().items()}

        def has(api: str) -> bool:
            return keys[api] in served

        first: list[Awaitable[object]] = [self._quorum(has)] if has("DescribeQuorum") else []
        if has("DescribeCluster") and nodes:
            first.append(self._ask("DescribeCluster", {}, AnyBroker()))
        listing = asyncio.ensure_future(
            map_fairly(self._cluster, nodes, lambda node: self._of_node(node, transactions=has("ListTransactions")))
        )
        await asyncio.gather(listing, *first)
        listed = listing.result()
        unasked = sum(groups is None for groups in listed)
        if unasked:
            told = f"ListGroups: there was no time left to ask {unasked:,} of {len(nodes):,} nodes"
            self._poll.vain.append(Vain(self._poll.at, "ListGroups", told))
        by_node = {
            node: groups for node, groups in zip(nodes, listed, strict=True) if isinstance(groups, dict) and groups
        }
        self._poll.groups = sum(len(names) for groups in by_node.values() for names in groups.values())
        offsets = served.get(keys["OffsetFetch"], (0, -1))
        version = min(offsets[1], LAST_OFFSET_FETCH)
        asked = [(node, kind, names) for node, groups in by_node.items() for kind, names in groups.items()]
        places: dict[str, set[int]] = defaultdict(set)
        fetched = version if version >= FIRST_OFFSET_FETCH else None
        for found in await map_limited(asked, lambda one: self._of_type(*one, has, fetched)):
            for topic, partitions in found.items():
                places[topic] |= partitions
        if places:
            await self._ends(places)

    async def _who(self) -> list[int] | None:
        """The brokers, None where nobody answers; controllers know no groups, and tell who they are another way."""
        if self._cluster.controllers:
            answer = await self._ask("DescribeCluster", {"endpointType": 2}, AnyBroker())
            return None if answer is None else []
        answer = await self._ask("Metadata", {"topics": []}, AnyBroker())
        if answer is None:
            return None
        # By the cluster's id in it the marts know whose quorum an address tells of: DescribeQuorum does not say.
        self._told.add(str(answer.address))
        nodes = sorted({broker["nodeId"] for broker in answer.value["brokers"]})
        self._poll.brokers = len(nodes)
        return nodes

    async def _quorum(self, has: Callable[[str], bool]) -> None:
        # A broker passes it on to the controller: while that one is frozen, nobody else's answer waits behind it.
        answer = await self._ask("DescribeQuorum", QUORUM, apart=True)
        if answer is not None and has("Metadata") and str(answer.address) not in self._told and answer.node is not None:
            self._told.add(str(answer.address))
            await self._ask("Metadata", {"topics": []}, Node(answer.node))

    async def _of_node(self, node: int, *, transactions: bool) -> dict[str, list[str]]:
        if not transactions:
            return await self._list(node)
        groups, _ = await asyncio.gather(self._list(node), self._ask("ListTransactions", {}, Node(node)))
        return groups

    async def _list(self, node: int) -> dict[str, list[str]]:
        """Type to ids of the groups that this broker coordinates: nobody has to look for their coordinators."""
        answer = await self._ask("ListGroups", {}, Node(node))
        found: dict[str, list[str]] = defaultdict(list)
        for group in answer.value["groups"] if answer is not None else ():
            # Before version 5 there was one type that ListGroups knew.
            kind = (group.get("groupType") or CLASSIC).lower()
            if self._takes(group["groupId"]):
                found[kind].append(group["groupId"])
        return found

    def _takes(self, group: str) -> bool:
        return not self._groups or any(matches(group, one) for one in self._groups)

    async def _of_type(
        self, node: int, kind: str, names: list[str], has: Callable[[str], bool], offset_fetch: int | None
    ) -> dict[str, set[int]]:
        """The partitions whose ends are worth asking for."""
        found: dict[str, set[int]] = defaultdict(set)
        api = DESCRIBES.get(kind)
        for some in _portions(sorted(names)):
            if api is not None and has(api):
                await self._ask(api, {"groups" if kind == CLASSIC else "groupIds": some}, Node(node))
            if kind == SHARE and has("DescribeShareGroupOffsets"):
                groups = [{"groupId": name, "topics": None} for name in some]
                # The broker asks the coordinators of the share state for it, and one of them may be frozen.
                answer = await self._ask("DescribeShareGroupOffsets", {"groups": groups}, Node(node), apart=True)
                _note(found, answer, "topicName")
            elif kind != SHARE and offset_fetch is not None:
                asked = {"groups": [{"groupId": name, "topics": None} for name in some], "requireStable": False}
                answer = await self._ask("OffsetFetch", asked, Node(node), offset_fetch)
                _note(found, answer, "name")
        return found

    async def _ends(self, places: Mapping[str, set[int]]) -> None:
        """Log end offsets, from the leaders."""
        asked = {"topics": [{"name": topic} for topic in sorted(places)], "allowAutoTopicCreation": False}
        answer = await self._ask("Metadata", asked, AnyBroker())
        if answer is None:
            return
        by_leader: dict[int, dict[str, list[dict[str, int]]]] = defaultdict(lambda: defaultdict(list))
        for topic in answer.value["topics"]:
            for partition in topic["partitions"]:
                number = partition["partitionIndex"]
                if number in places.get(topic["name"], ()) and partition["leaderId"] >= 0:
                    at = {"partitionIndex": number, "timestamp": LATEST}
                    by_leader[partition["leaderId"]][topic["name"]].append(at)

        def asked_of(topics: Mapping[str, list[dict[str, int]]]) -> dict[str, Any]:
            named = [{"name": name, "partitions": some} for name, some in topics.items()]
            return {"replicaId": -1, "topics": named}

        await map_limited(by_leader.items(), lambda one: self._ask("ListOffsets", asked_of(one[1]), Node(one[0])))

    async def _ask(
        self,
        api: str,
        value: Mapping[str, Any],
        to: Target | None = None,
        version: int | None = None,
        *,
        apart: bool = False,
    ) -> Answer | None:
        call = self._cluster.call(api, value, to=to, version=version, timeout=self._timeout, apart=apart)
        return await self._try(api, call)

    async def _try(self, api: str, asked: Awaitable[T]) -> T | None:
        """None where it was in vain. What a broker lacks or refuses is told once a poll; it does not end it."""
        at = time.time_ns()
        try:
            return await asked
        except KafkascopeError as error:
            reached = not isinstance(error, ReachError)
            self._silent[api] += not reached
            if reached or self._silent[api] <= MOST_VAIN:
                self._poll.vain.append(Vain(at, api, str(error), reached))
            return None


def _portions(names: list[str]) -> Iterable[list[str]]:
    return (names[at : at + MAX_OBSERVED_GROUPS_A_CALL] for at in range(0, len(names), MAX_OBSERVED_GROUPS_A_CALL))


def _note(found: dict[str, set[int]], answer: Answer | None, name: str) -> None:
    for group in answer.value["groups"] if answer is not None else ():
        for topic in group["topics"] or ():
            found[topic[name]].update(one["partitionIndex"] for one in topic["partitions"])
