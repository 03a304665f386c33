"""Makes calls for several views: with retries while an error is retriable, to many nodes at once, and within a fair
share of the time."""

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
    error_gap,
    failure_gap,
    is_retriable,
    needed_acl,
    not_served_gap,
    only_row,
)
from kafkascope.client.describe.values import NodeAddress
from kafkascope.client.targets import Coordinator, Node, Target
from kafkascope.client.transport.deadline import after
from kafkascope.errors import RefusedError, UsageError
from kafkascope.limits import MAX_BROKERS
from kafkascope.schema.catalog import apis, message

if TYPE_CHECKING:
    from kafkascope.client.answer import Answer
    from kafkascope.client.cluster import Cluster

_T = TypeVar("_T")
_R = TypeVar("_R")

RETRY_SECONDS = 0.1
# Concurrent calls: enough to hide network latency, few enough to be no load.
MAX_CONCURRENT = 16
# Each of many nodes gets a fair share of the time, but at least enough for a response and a retry.
_MIN_SECONDS = 1.0
NO_TIME = "no time was left to ask; --timeout SECONDS waits longer"
# Nodes without a response that are named one by one.
MAX_GAPS = 20

TOPIC_RESOURCE, BROKER_RESOURCE, BROKER_LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE = 2, 4, 8, 16, 32


async def call_with_retries(
    cluster: "Cluster",
    api: str,
    value: Mapping[str, Any],
    verdict: Callable[[Mapping[str, Any]], Gap | None],
    *,
    to: Target | None = None,
    version: int | None = None,
    apart: bool = False,
) -> tuple["Answer", Gap | None]:
    """The response, and the gap that `verdict` finds in it. Retries temporary errors for half of the remaining time of
    a look. `apart` is that of `Cluster.call`."""
    until = time.monotonic() + cluster.share()
    while True:
        try:
            response = await cluster.call(api, value, to=to, version=version, apart=apart)
        except RefusedError as error:
            # finding the coordinator needs a permission of its own
            need = needed_acl(api, error.code, to.key if isinstance(to, Coordinator) else None)
            raise RefusedError(f"{error}; it needs {need}", error.code) if need else error from None
        gap = verdict(response.value)
        if gap is None or gap.code is None or not is_retriable(gap.code):
            return response, gap
        if time.monotonic() + RETRY_SECONDS > until:
            return response, gap
        await asyncio.sleep(RETRY_SECONDS)


async def map_limited(items: Iterable[_T], do: Callable[[_T], Awaitable[_R]]) -> list[_R]:
    """Runs all, a few at a time, and returns results in order; the first failure cancels the others."""
    pending = enumerate(items)
    results: dict[int, _R] = {}

    async def work() -> None:
        for number, item in pending:
            results[number] = await do(item)

    tasks = [asyncio.ensure_future(work()) for _ in range(MAX_CONCURRENT)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return [results[number] for number in range(len(results))]


async def map_fairly(
    cluster: "Cluster", items: Sequence[_T], call: Callable[[_T], Awaitable[_R]]
) -> list[_R | Failure | None]:
    """Each call's result, or its error; None if there was no time. All together get the time of one call, or half of
    the remaining time of a look if there are several, and the memory of one response."""
    deadline = after(cluster.share() if len(items) > 1 else cluster.settings.timeout)
    remaining = len(items)

    async def attempt(item: _T) -> _R | Failure | None:
        nonlocal remaining
        seconds = deadline.left()
        if not seconds:
            return None
        fair = max(seconds * MAX_CONCURRENT / remaining, _MIN_SECONDS)
        remaining -= 1
        try:
            with cluster.look(min(seconds, fair)):
                return await call(item)
        except FAILURES as error:
            # The error is kept until all calls ended, and its frames would keep their values, such as a response.
            error.__traceback__ = error.__context__ = None
            return error

    with cluster.together():
        return await map_limited(items, attempt)


async def map_nodes(
    cluster: "Cluster", label: str, api: str, call: Callable[[NodeAddress], Awaitable[_R]]
) -> tuple[dict[NodeAddress, _R], list[Gap]]:
    """One result per node. A node without a valid response is a gap, as long as another one responds."""
    nodes = [NodeAddress(broker.node_id, str(broker.address)) for broker in await cluster.brokers()]
    results: dict[NodeAddress, _R] = {}
    failed: dict[NodeAddress, Failure] = {}
    for node, result in zip(nodes, await map_fairly(cluster, nodes, call), strict=True):
        if isinstance(result, FAILURES):
            failed[node] = result
        elif result is not None:
            results[node] = result
    if failed and not results:
        raise next(iter(failed.values()))
    gaps = [failure_gap(f"{label} of node {node.node_id}", api, error) for node, error in failed.items()]
    if len(gaps) > MAX_GAPS:
        unnamed = f"{label} of {len(gaps) - MAX_GAPS:,} more nodes"
        gaps[MAX_GAPS:] = [Gap(unnamed, api, NO_ANSWER, detail="none of them responded")]
    late = len(nodes) - len(results) - len(failed)
    if late:
        gaps.append(Gap(f"{label} of {late:,} nodes", api, UNASKED, detail=NO_TIME))
    if cluster.left_out:
        detail = f"only the first {MAX_BROKERS:,} brokers are asked"
        gaps.append(Gap(f"{label} of {cluster.left_out:,} brokers", api, UNASKED, detail=detail))
    return results, gaps


def require_brokers(cluster: "Cluster", label: str) -> None:
    """Controllers only know the metadata log and little else."""
    if cluster.controllers:
        raise UsageError(f"only brokers know {label}; give a broker's address, without --bootstrap-controller")


async def served_versions(cluster: "Cluster", api: str) -> tuple[int, int] | None:
    """Versions of an API that the brokers have, None if they don't know it."""
    key = next(key for key, name in apis().items() if name == api)
    return (await cluster.versions()).get(key)


async def missing_api_gap(cluster: "Cluster", api: str, label: str) -> Gap | None:
    """Checks before a call that the brokers know its API."""
    if await served_versions(cluster, api) is not None:
        return None
    return not_served_gap(label, api, f"these brokers don't know {api}; {_introduced_in(api)}")


def _introduced_in(api: str) -> str:
    return f"it came with Kafka {message(f'{api}Request').valid[0][0].first}"


async def numeric_configs(
    cluster: "Cluster", node: int | None, names: Sequence[str], label: str
) -> tuple[dict[str, int], list[Gap]]:
    """Numeric settings of one node, or of any, by name: those that it reports."""
    gap = await missing_api_gap(cluster, "DescribeConfigs", label)
    if gap is not None:
        return {}, [gap]
    if node is None:  # the address that responded isn't one of the cluster's, as with a tunnel
        node = only_row(await cluster.brokers(), "Metadata").node_id
    resource = {"resourceType": BROKER_RESOURCE, "resourceName": str(node), "configurationKeys": list(names)}
    try:
        with cluster.part():
            response = await cluster.call("DescribeConfigs", {"resources": [resource]}, to=Node(node))
    except FAILURES as error:
        return {}, [failure_gap(label, "DescribeConfigs", error)]
    result = only_row(response.value["results"], "DescribeConfigs")
    if result["errorCode"]:
        return {}, [error_gap(label, "DescribeConfigs", result["errorCode"], None, result["errorMessage"])]
    return {
        config["name"]: int(config["value"]) for config in result["configs"] if (config["value"] or "").isdigit()
    }, []


def group_target(group: str) -> Coordinator:
    return Coordinator("group", group)


def responding_node(response: "Answer") -> NodeAddress | None:
    return None if response.node is None else NodeAddress(response.node, str(response.address))
