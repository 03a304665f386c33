"""Questions that several views have: asked again while the answer says `later`, and told apart from what is missing."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from kafkascope.client.describe.gaps import (
    FAILURES,
    NO_ANSWER,
    UNASKED,
    Failure,
    Gap,
    first,
    gap,
    needed,
    no_answer,
    not_served,
    retriable,
)
from kafkascope.client.describe.values import Node as NodeValue
from kafkascope.client.targets import Coordinator, Node, Target
from kafkascope.client.transport.deadline import after
from kafkascope.errors import RefusedError, UsageError
from kafkascope.limits import MAX_BROKERS
from kafkascope.schema.catalog import apis, message

if TYPE_CHECKING:
    from kafkascope.client.answer import Answer
    from kafkascope.client.cluster import Cluster

T = TypeVar("T")
R = TypeVar("R")

AGAIN_SECONDS = 0.1
# Questions under way at once: enough to hide the distance, few enough to be no load.
AT_ONCE = 16
# Of many nodes each gets a fair part of the time, but as much as an answer and a second try take.
LEAST_SECONDS = 1.0
NO_TIME = "there was no time left to ask; --timeout SECONDS waits longer"
# Nodes without an answer that are named one by one.
MOST_GAPS = 20

TOPIC_RESOURCE, BROKER_RESOURCE, BROKER_LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE = 2, 4, 8, 16, 32


async def settled(
    cluster: "Cluster",
    api: str,
    value: Mapping[str, Any],
    verdict: Callable[[Mapping[str, Any]], Gap | None],
    *,
    to: Target | None = None,
    version: int | None = None,
    apart: bool = False,
) -> "tuple[Answer, Gap | None]":
    """The answer, and what `verdict` says of it. Errors that pass are waited out, for half of the time
    that a look has left. `apart` is that of `Cluster.call`."""
    until = time.monotonic() + cluster.share()
    while True:
        try:
            answer = await cluster.call(api, value, to=to, version=version, apart=apart)
        except RefusedError as error:
            # the way to the coordinator needs a right of its own
            need = needed(api, error.code, to.key if isinstance(to, Coordinator) else None)
            raise RefusedError(f"{error}; it needs {need}", error.code) if need else error from None
        lack = verdict(answer.value)
        if lack is None or lack.code is None or not retriable(lack.code):
            return answer, lack
        if time.monotonic() + AGAIN_SECONDS > until:
            return answer, lack
        await asyncio.sleep(AGAIN_SECONDS)


async def each(items: Iterable[T], do: Callable[[T], Awaitable[R]]) -> list[R]:
    """All of them, a few at a time, in order; the first failure ends the others."""
    left = enumerate(items)
    found: dict[int, R] = {}

    async def work() -> None:
        for number, item in left:
            found[number] = await do(item)

    tasks = [asyncio.ensure_future(work()) for _ in range(AT_ONCE)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return [found[number] for number in range(len(found))]


async def fairly(cluster: "Cluster", items: Sequence[T], ask: Callable[[T], Awaitable[R]]) -> list[R | Failure | None]:
    """Each one's answer, or why there is none; None where there was no time to ask. All together get the time of one
    call, or half of what is left of a look where there are several, and the memory of one response."""
    deadline = after(cluster.share() if len(items) > 1 else cluster.settings.timeout)
    left = len(items)

    async def one(item: T) -> R | Failure | None:
        nonlocal left
        seconds = deadline.left()
        if not seconds:
            return None
        fair = max(seconds * AT_ONCE / left, LEAST_SECONDS)
        left -= 1
        try:
            with cluster.look(min(seconds, fair)):
                return await ask(item)
        except FAILURES as error:
            # It's kept until all were asked. The frames that it passed hold what they were at, such as a response.
            error.__traceback__ = error.__context__ = None
            return error

    with cluster.together():
        return await each(items, one)


async def each_node(
    cluster: "Cluster", what: str, api: str, ask: Callable[[NodeValue], Awaitable[R]]
) -> tuple[dict[NodeValue, R], list[Gap]]:
    """One answer a node. A node that does not answer, or not with a response, is a gap, as long as another does."""
    nodes = [NodeValue(one.node_id, str(one.address)) for one in await cluster.brokers()]
    found: dict[NodeValue, R] = {}
    failed: dict[NodeValue, Failure] = {}
    for node, said in zip(nodes, await fairly(cluster, nodes, ask), strict=True):
        if isinstance(said, FAILURES):
            failed[node] = said
        elif said is not None:
            found[node] = said
    if failed and not found:
        raise next(iter(failed.values()))
    gaps = [no_answer(f"{what} of node {node.node_id}", api, error) for node, error in failed.items()]
    if len(gaps) > MOST_GAPS:
        more = f"{what} of {len(gaps) - MOST_GAPS:,} more nodes"
        gaps[MOST_GAPS:] = [Gap(more, api, NO_ANSWER, detail="none of them answered")]
    late = len(nodes) - len(found) - len(failed)
    if late:
        gaps.append(Gap(f"{what} of {late:,} nodes", api, UNASKED, detail=NO_TIME))
    if cluster.left_out:
        told = f"of more than {MAX_BROKERS:,} brokers the first are asked"
        gaps.append(Gap(f"{what} of {cluster.left_out:,} brokers", api, UNASKED, detail=told))
    return found, gaps


def brokers_only(cluster: "Cluster", what: str) -> None:
    """Controllers know the metadata log and little else."""
    if cluster.controllers:
        raise UsageError(f"{what} are known to brokers alone; give a broker's address, without --bootstrap-controller")


async def serves(cluster: "Cluster", api: str) -> tuple[int, int] | None:
    """Versions of an API that the brokers have, None where they do not know it."""
    key = next(key for key, name in apis().items() if name == api)
    return (await cluster.versions()).get(key)


async def lacking(cluster: "Cluster", api: str, what: str) -> Gap | None:
    """Said before a call that the brokers could not answer."""
    if await serves(cluster, api) is not None:
        return None
    return not_served(what, api, f"these brokers do not know {api}; {_since(api)}")


def _since(api: str) -> str:
    return f"it came with Kafka {message(f'{api}Request').valid[0][0].first}"


async def numbers_of(
    cluster: "Cluster", node: int | None, names: Sequence[str], what: str
) -> tuple[dict[str, int], list[Gap]]:
    """Settings of one node, or of any, that are numbers, by name: those that it tells."""
    lack = await lacking(cluster, "DescribeConfigs", what)
    if lack is not None:
        return {}, [lack]
    if node is None:  # the address that answered is not one that the cluster gives its nodes, as behind a tunnel
        node = first(await cluster.brokers(), "Metadata").node_id
    asked = {"resourceType": BROKER_RESOURCE, "resourceName": str(node), "configurationKeys": list(names)}
    try:
        with cluster.part():
            answer = await cluster.call("DescribeConfigs", {"resources": [asked]}, to=Node(node))
    except FAILURES as error:
        return {}, [no_answer(what, "DescribeConfigs", error)]
    result = first(answer.value["results"], "DescribeConfigs")
    if result["errorCode"]:
        return {}, [gap(what, "DescribeConfigs", result["errorCode"], None, result["errorMessage"])]
    return {one["name"]: int(one["value"]) for one in result["configs"] if (one["value"] or "").isdigit()}, []


def group_target(group: str) -> Coordinator:
    return Coordinator("group", group)


def node_of(answer: "Answer") -> NodeValue | None:
    return None if answer.node is None else NodeValue(answer.node, str(answer.address))
