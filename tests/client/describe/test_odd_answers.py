"""Answers that no broker gives, of the right layout and any content: every view, or one error, never a surprise."""

import asyncio
import contextlib
import io
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kafkascope.cli.describe.apis import show_apis
from kafkascope.cli.describe.cluster import show_cluster, show_features, show_transactions
from kafkascope.cli.describe.group import show_group, show_groups
from kafkascope.cli.describe.quorum import show_quorum
from kafkascope.cli.describe.share import show_share_group
from kafkascope.cli.describe.streams import show_streams_group
from kafkascope.cli.describe.topic import show_configs, show_topic
from kafkascope.cli.output import plain
from kafkascope.client import Cluster, connect
from kafkascope.client.describe.apis import describe_apis
from kafkascope.client.describe.cluster import describe_cluster
from kafkascope.client.describe.configs import Resource, describe_configs
from kafkascope.client.describe.features import describe_features
from kafkascope.client.describe.group import describe_group
from kafkascope.client.describe.groups import describe_groups
from kafkascope.client.describe.quorum import METADATA_TOPIC, describe_quorum
from kafkascope.client.describe.share_group import describe_share_group
from kafkascope.client.describe.streams_group import describe_streams_group
from kafkascope.client.describe.topic import describe_topic
from kafkascope.client.describe.transactions import describe_transactions
from kafkascope.errors import KafkascopeError
from kafkascope.schema.layouts.layout import layout
from kafkascope.schema.layouts.samples import sample
from tests.client.servers import Peer, serving

CASES = 20
VIEWS: dict[str, tuple[Callable[[Cluster], Awaitable[Any]], Callable[[Any], Any]]] = {
    "quorum": (describe_quorum, show_quorum),
    "groups": (describe_groups, show_groups),
    "cluster": (describe_cluster, show_cluster),
    "features": (describe_features, show_features),
    "apis": (describe_apis, lambda view: show_apis(view, True)),
    "transactions": (describe_transactions, show_transactions),
    "share-group": (lambda cluster: describe_share_group(cluster, "g"), show_share_group),
    "streams-group": (lambda cluster: describe_streams_group(cluster, "g"), show_streams_group),
    "group": (lambda cluster: describe_group(cluster, "g"), show_group),
    "topic": (lambda cluster: describe_topic(cluster, "orders"), show_topic),
    "configs": (
        lambda cluster: describe_configs(cluster, [Resource("topic", "orders")]),
        lambda view: show_configs(view[0], True),
    ),
}


def tame(value: Any) -> Any:
    """Without error codes: what they do is told elsewhere, and here they would hide the rest."""
    if isinstance(value, dict):
        return {name: 0 if name == "errorCode" else tame(inner) for name, inner in value.items()}
    return [tame(inner) for inner in value] if isinstance(value, list) else value


def name_the_log(value: dict[str, Any]) -> None:
    """Else it is about another topic, and no quorum's."""
    for topic in value["topics"][:1]:
        topic["topicName"] = METADATA_TOPIC
        for partition in topic["partitions"][:1]:
            partition["partitionIndex"] = 0
            for voter in partition["currentVoters"][:1]:
                voter["replicaId"] = partition["leaderId"]


def odd(case: int, tamed: bool) -> Callable[[Peer], Awaitable[None]]:
    async def handler(peer: Peer) -> None:
        request = await peer.greet()
        while True:
            value = sample(layout(f"{request.api}Response", request.version), case)
            value = tame(value) if tamed else value
            own = {"nodeId": 1, "host": peer.address.host, "port": peer.address.port}
            if request.api == "Metadata":
                value |= peer.metadata(topics=value["topics"])
            elif request.api == "FindCoordinator":
                value = {"coordinators": [{"key": "g", **own}]}
            elif request.api == "DescribeCluster":
                value |= {"brokers": [{"brokerId": 1, "host": peer.address.host, "port": peer.address.port}]}
            elif request.api == "DescribeQuorum":
                name_the_log(value)
            await peer.answer(request, value)
            request = await peer.request()
            while request.api == "ApiVersions":
                value = sample(layout("ApiVersionsResponse", request.version), case)
                await peer.answer(request, tame(value) if tamed else value)
                request = await peer.request()

    return handler


@pytest.mark.parametrize("tamed", [True, False], ids=["without errors", "with errors"])
@pytest.mark.parametrize("view", VIEWS)
def test_any_answer_becomes_a_view_or_one_error(view: str, tamed: bool) -> None:
    ask, show = VIEWS[view]
    shown = 0

    async def run(case: int) -> bool:
        async with serving(odd(case, tamed)) as address:
            try:
                async with connect(str(address), timeout=0.2) as cluster:
                    seen = await ask(cluster)
            except KafkascopeError:
                return False
            with contextlib.redirect_stdout(io.StringIO()):
                show(seen)
            plain(seen)
            return True

    for case in range(CASES):
        shown += asyncio.run(run(case))
    # else nothing but errors was looked at
    assert shown or not tamed
