"""Polls a cluster and returns every response with its bytes and times, and the calls that failed. A poll never raises
whatever brokers return, or don't."""

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

_T = TypeVar("_T")

_CLASSIC, _CONSUMER, _SHARE, _STREAMS = "classic", "consumer", "share", "streams"
# Calls per type of group: the description, then what lag is computed from.
_DESCRIBE_APIS = {
    _SHARE: "ShareGroupDescribe",
    _STREAMS: "StreamsGroupDescribe",
    _CONSUMER: "ConsumerGroupDescribe",
    _CLASSIC: "DescribeGroups",
}
# From version 10 on OffsetFetch only has topic ids (KIP-848), and names need no lookup. Before version 8 it's about one
# group (KIP-709).
_FIRST_OFFSET_FETCH, _LAST_OFFSET_FETCH = 8, 9
_LATEST = -1
# Failed calls per API and poll that are reported one by one: those of dead nodes only differ in the address.
MAX_FAILURES = 10


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A call without a response: when, what was requested, and why, in one line. `reached` is True if the cluster
    responds but can't serve the call."""

    at: int
    api: str
    detail: str
    reached: bool = False


@dataclass(slots=True)
class Poll:
    """The results of one round. Times are nanoseconds since the epoch."""

    at: int
    answers: list[Answer] = field(default_factory=list)
    failures: list[FailedCall] = field(default_factory=list)
    groups: int = 0
    brokers: int = 0

    @property
    def reached(self) -> bool:
        return bool(self.answers)


class Observer:
    """`groups` are ids or patterns with `*` and `?`; none means all. `timeout` is for one call, in seconds. `early` are
    responses from connecting; they belong to the first poll."""

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
        self._identified: set[str] = set()
        # Failed calls of a poll, by API.
        self._failed: Counter[str] = Counter()

    async def poll(self, into: Poll | None = None) -> Poll:
        """`into` is filled as responses arrive, so that a poll that is cut short keeps what it has."""
        self._poll = poll = Poll(time.time_ns()) if into is None else into
        poll.answers += self._early
        self._early.clear()
        self._cluster.every_answer = poll.answers.append
        self._failed.clear()
        with self._cluster.look(), self._cluster.together():
            await self._round()
        for api, silent in self._failed.items():
            if silent > MAX_FAILURES:
                detail = f"{api}: {silent - MAX_FAILURES:,} more calls got no response"
                poll.failures.append(FailedCall(poll.at, api, detail))
        return poll

    def open_connections(self) -> frozenset[tuple[str, str, int]]:
        """Connections that later polls may reuse, between two polls."""
        return frozenset(
            (own, str(address), connected_at) for own, address, connected_at in self._cluster.open_connections()
        )

    async def _round(self) -> None:
        # The first call shows whether the cluster responds, so that one that is gone is waited for once, not per call.
        nodes = await self._who()
        served = await self._try("ApiVersions", self._cluster.versions()) if nodes is not None else None
        if nodes is None or served is None:
            return
        keys = {name: key for key, name in apis().items()}

        def serves(api: str) -> bool:
            return keys[api] in served

        first: list[Awaitable[object]] = [self._quorum(serves)] if serves("DescribeQuorum") else []
        if serves("DescribeCluster") and nodes:
            first.append(self._ask("DescribeCluster", {}, AnyBroker()))
        listing = asyncio.ensure_future(
            map_fairly(self._cluster, nodes, lambda node: self._of_node(node, transactions=serves("ListTransactions")))
        )
        await asyncio.gather(listing, *first)
        listed = listing.result()
        unasked = sum(groups is None for groups in listed)
        if unasked:
            detail = f"ListGroups: no time was left to ask {unasked:,} of {len(nodes):,} nodes"
            self._poll.failures.append(FailedCall(self._poll.at, "ListGroups", detail))
        by_node = {
            node: groups for node, groups in zip(nodes, listed, strict=True) if isinstance(groups, dict) and groups
        }
        self._poll.groups = sum(len(names) for groups in by_node.values() for names in groups.values())
        offsets = served.get(keys["OffsetFetch"], (0, -1))
        version = min(offsets[1], _LAST_OFFSET_FETCH)
        jobs = [(node, kind, names) for node, groups in by_node.items() for kind, names in groups.items()]
        places: dict[str, set[int]] = defaultdict(set)
        fetched = version if version >= _FIRST_OFFSET_FETCH else None
        for partitions_by_topic in await map_limited(jobs, lambda job: self._of_type(*job, serves, fetched)):
            for topic, partitions in partitions_by_topic.items():
                places[topic] |= partitions
        if places:
            await self._ends(places)

    async def _who(self) -> list[int] | None:
        """The brokers, None if no node responds. Controllers know no groups and identify themselves differently."""
        if self._cluster.controllers:
            response = await self._ask("DescribeCluster", {"endpointType": 2}, AnyBroker())
            return None if response is None else []
        response = await self._ask("Metadata", {"topics": []}, AnyBroker())
        if response is None:
            return None
        # From its cluster id the marts know whose quorum an address belongs to, which DescribeQuorum doesn't report.
        self._identified.add(str(response.address))
        nodes = sorted({broker["nodeId"] for broker in response.value["brokers"]})
        self._poll.brokers = len(nodes)
        return nodes

    async def _quorum(self, serves: Callable[[str], bool]) -> None:
        # A broker forwards it to the controller: while that is frozen, no other response waits for it.
        response = await self._ask("DescribeQuorum", QUORUM, apart=True)
        if (
            response is not None
            and serves("Metadata")
            and str(response.address) not in self._identified
            and response.node is not None
        ):
            self._identified.add(str(response.address))
            await self._ask("Metadata", {"topics": []}, Node(response.node))

    async def _of_node(self, node: int, *, transactions: bool) -> dict[str, list[str]]:
        if not transactions:
            return await self._list(node)
        groups, _ = await asyncio.gather(self._list(node), self._ask("ListTransactions", {}, Node(node)))
        return groups

    async def _list(self, node: int) -> dict[str, list[str]]:
        """Ids by type of the groups that this broker coordinates, so that no coordinator has to be looked up."""
        response = await self._ask("ListGroups", {}, Node(node))
        groups: dict[str, list[str]] = defaultdict(list)
        for group in response.value["groups"] if response is not None else ():
            # Before version 5 ListGroups had only one type.
            kind = (group.get("groupType") or _CLASSIC).lower()
            if self._takes(group["groupId"]):
                groups[kind].append(group["groupId"])
        return groups

    def _takes(self, group: str) -> bool:
        return not self._groups or any(matches(group, pattern) for pattern in self._groups)

    async def _of_type(
        self, node: int, kind: str, names: list[str], serves: Callable[[str], bool], offset_fetch: int | None
    ) -> dict[str, set[int]]:
        """The partitions whose ends are needed."""
        partitions: dict[str, set[int]] = defaultdict(set)
        api = _DESCRIBE_APIS.get(kind)
        for batch in _batches(sorted(names)):
            if api is not None and serves(api):
                await self._ask(api, {"groups" if kind == _CLASSIC else "groupIds": batch}, Node(node))
            if kind == _SHARE and serves("DescribeShareGroupOffsets"):
                groups = [{"groupId": name, "topics": None} for name in batch]
                # The broker asks the share coordinators for it, and one of them may be frozen.
                response = await self._ask("DescribeShareGroupOffsets", {"groups": groups}, Node(node), apart=True)
                _add_partitions(partitions, response, "topicName")
            elif kind != _SHARE and offset_fetch is not None:
                request = {"groups": [{"groupId": name, "topics": None} for name in batch], "requireStable": False}
                response = await self._ask("OffsetFetch", request, Node(node), offset_fetch)
                _add_partitions(partitions, response, "name")
        return partitions

    async def _ends(self, places: Mapping[str, set[int]]) -> None:
        """Log end offsets, from the leaders."""
        request = {"topics": [{"name": topic} for topic in sorted(places)], "allowAutoTopicCreation": False}
        response = await self._ask("Metadata", request, AnyBroker())
        if response is None:
            return
        by_leader: dict[int, dict[str, list[dict[str, int]]]] = defaultdict(lambda: defaultdict(list))
        for topic in response.value["topics"]:
            for partition in topic["partitions"]:
                number = partition["partitionIndex"]
                if number in places.get(topic["name"], ()) and partition["leaderId"] >= 0:
                    row = {"partitionIndex": number, "timestamp": _LATEST}
                    by_leader[partition["leaderId"]][topic["name"]].append(row)

        def list_offsets_request(topics: Mapping[str, list[dict[str, int]]]) -> dict[str, Any]:
            named = [{"name": name, "partitions": rows} for name, rows in topics.items()]
            return {"replicaId": -1, "topics": named}

        await map_limited(
            by_leader.items(), lambda item: self._ask("ListOffsets", list_offsets_request(item[1]), Node(item[0]))
        )

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

    async def _try(self, api: str, call: Awaitable[_T]) -> _T | None:
        """None if it failed. What a broker lacks or refuses is reported once per poll, and doesn't end the poll."""
        started_at = time.time_ns()
        try:
            return await call
        except KafkascopeError as error:
            reached = not isinstance(error, ReachError)
            self._failed[api] += not reached
            if reached or self._failed[api] <= MAX_FAILURES:
                self._poll.failures.append(FailedCall(started_at, api, str(error), reached))
            return None


def _batches(names: list[str]) -> Iterable[list[str]]:
    return (
        names[start : start + MAX_OBSERVED_GROUPS_A_CALL] for start in range(0, len(names), MAX_OBSERVED_GROUPS_A_CALL)
    )


def _add_partitions(partitions: dict[str, set[int]], response: Answer | None, name: str) -> None:
    for group in response.value["groups"] if response is not None else ():
        for topic in group["topics"] or ():
            partitions[topic[name]].update(row["partitionIndex"] for row in topic["partitions"])
