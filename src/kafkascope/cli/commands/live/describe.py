"""`kafkascope describe` prints a part of a running cluster, once or repeatedly, as text or JSON."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from kafkascope.cli.describe.run_view import as_seconds, describe_several, run_view, view_options

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from kafkascope.client.cluster import Cluster
    from kafkascope.client.describe.apis import ApisView
    from kafkascope.client.describe.configs import ResourceConfigs
    from kafkascope.client.describe.gaps import Gap
    from kafkascope.client.describe.group import ConsumerGroupView
    from kafkascope.client.describe.share_group import ShareGroupView
    from kafkascope.client.describe.streams_values import StreamsGroupView
    from kafkascope.client.describe.topic import TopicView
    from kafkascope.client.describe.transactions import TransactionList

host_argument = click.argument("host")
all_option = click.option("--all", "everything", is_flag=True, help="Include everything that is at its default.")


@dataclass(frozen=True, slots=True)
class SeveralGroups:
    """`refused` are the errors of requested groups that aren't shown, `gaps` is what the list of groups lacks."""

    groups: "tuple[ShareGroupView | StreamsGroupView | ConsumerGroupView, ...]"
    refused: tuple[str, ...]
    gaps: "tuple[Gap, ...]" = ()


@dataclass(frozen=True, slots=True)
class SeveralTopics:
    topics: "tuple[TopicView, ...]"
    refused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SeveralConfigs:
    resources: "tuple[ResourceConfigs, ...]"

    @property
    def refused(self) -> bool:
        """Whether a broker refused it; a broker that didn't respond refused nothing."""
        return any(lack.code is not None for resource in self.resources for lack in resource.gaps)


@click.group
def run() -> None:
    """Describe a part of a running cluster.

    HOST is host:port, or several separated by commas. Each view has --json and --watch. With some permissions missing
    it shows what it may, and names the ACL. Exits with 1 if a broker refuses, with 4 if none responds.
    """


@run.command
@host_argument
@view_options
def quorum(host: str, **options: Any) -> int:
    """Quorum leader, voters, observers and lag.

    Every voter and observer with its lag in records and in time, its last fetch and its endpoints.
    """
    from kafkascope.cli.describe.quorum import show_quorum
    from kafkascope.client.describe.quorum import describe_quorum

    return run_view(host, options, describe_quorum, show_quorum)


@run.command(name="share-group")
@host_argument
@click.argument("group", nargs=-1)
@click.option(
    "--sample",
    metavar="SECONDS",
    callback=as_seconds,
    help="Look twice, this far apart, and show which partitions have stalled.",
)
@view_options
def share_group(host: str, group: tuple[str, ...], sample: float | None, **options: Any) -> int:
    """Share groups and their partitions.

    Members, start, end and lag of every partition, delivery settings. Without GROUP, every share group.
    """
    import asyncio

    from kafkascope.cli.describe.share import show_share_group
    from kafkascope.client.describe.share_group import ShareGroupView, describe_share_group, mark_stalled

    before: dict[str, ShareGroupView] = {}

    async def describe_one(cluster: "Cluster", name: str) -> ShareGroupView:
        now = await describe_share_group(cluster, name)
        if sample is not None and name not in before:
            before[name] = now
            await asyncio.sleep(sample)
            now = await describe_share_group(cluster, name)
        marked = mark_stalled(before[name], now) if name in before else now
        before[name] = now
        return marked

    return _view_groups(host, options, group, ("share",), describe_one, show_share_group)


@run.command(name="streams-group")
@host_argument
@click.argument("group", nargs=-1)
@view_options
def streams_group(host: str, group: tuple[str, ...], **options: Any) -> int:
    """Streams groups, their tasks and topology.

    Members by process, target and current tasks, lag of the input, what a rebalance waits for. Without GROUP, every
    streams group.
    """
    from kafkascope.cli.describe.streams import show_streams_group
    from kafkascope.client.describe.streams_group import describe_streams_group

    return _view_groups(host, options, group, ("streams",), describe_streams_group, show_streams_group)


@run.command(name="group")
@host_argument
@click.argument("group", nargs=-1)
@view_options
def consumer_group(host: str, group: tuple[str, ...], **options: Any) -> int:
    """Classic and consumer groups.

    Members and their partitions, committed offset and lag of every partition. Without GROUP, every such group.
    """
    from kafkascope.cli.describe.group import show_group
    from kafkascope.client.describe.group import describe_group

    return _view_groups(host, options, group, ("classic", "consumer"), describe_group, show_group)


@run.command
@host_argument
@view_options
def cluster(host: str, **options: Any) -> int:
    """Nodes, controller, unhealthy partitions."""
    from kafkascope.cli.describe.cluster import show_cluster
    from kafkascope.client.describe.cluster import describe_cluster

    return run_view(host, options, describe_cluster, show_cluster)


@run.command
@host_argument
@view_options
def features(host: str, **options: Any) -> int:
    """Feature levels, and the levels that nodes support."""
    from kafkascope.cli.describe.cluster import show_features
    from kafkascope.client.describe.features import describe_features

    return run_view(host, options, describe_features, show_features)


@run.command
@host_argument
@click.argument("topic", nargs=-1, required=True)
@view_options
def topic(host: str, topic: tuple[str, ...], **options: Any) -> int:
    """Topics and their partitions.

    Leader, replicas and offsets of every partition, reassignments, settings that aren't defaults.
    """
    from kafkascope.cli.describe.gaps import show_refused
    from kafkascope.cli.describe.topic import show_topic
    from kafkascope.client.describe.topic import describe_topic

    async def ask(cluster: "Cluster") -> SeveralTopics:
        return SeveralTopics(*await describe_several(topic, lambda name: describe_topic(cluster, name)))

    def show(view: SeveralTopics) -> int:
        _show_each(view.topics, show_topic)
        return show_refused(view.refused)

    return run_view(host, options, ask, show)


@run.command
@host_argument
@click.argument("transactional_id", nargs=-1)
@click.option(
    "--state", "states", multiple=True, metavar="STATE", help="Only transactions in this state, such as Ongoing."
)
@view_options
def transactions(host: str, transactional_id: tuple[str, ...], states: tuple[str, ...], **options: Any) -> int:
    """Transactions, and how long they have been open.

    State, producer, timeout, and the partitions that each holds up. Without TRANSACTIONAL_ID, all of them.
    """
    from kafkascope.cli.describe.cluster import show_transactions
    from kafkascope.client.describe.transactions import describe_transactions, parse_states

    parse_states(states)

    async def ask(cluster: "Cluster") -> "TransactionList":
        return await describe_transactions(cluster, transactional_id, states)

    return run_view(host, options, ask, show_transactions)


@run.command
@host_argument
@click.argument("resource", nargs=-1)
@all_option
@view_options
def configs(host: str, resource: tuple[str, ...], everything: bool, **options: Any) -> int:
    """Settings, and where each comes from.

    RESOURCE is topic:NAME, broker:ID, broker: (cluster-wide defaults), group:NAME, client-metrics:NAME or
    broker-logger:ID. Without it, every broker.
    """
    from kafkascope.cli.describe.topic import show_configs
    from kafkascope.client.describe.configs import describe_configs, parse_resource
    from kafkascope.client.describe.gaps import refused_error

    names = [parse_resource(name) for name in resource]

    async def ask(cluster: "Cluster") -> SeveralConfigs:
        described = await describe_configs(cluster, names)
        if described and all(settings.gaps for settings in described):
            lack = described[0].gaps[0]
            raise refused_error(lack if lack.detail else replace(lack, detail=lack.what))
        return SeveralConfigs(described)

    def show(view: SeveralConfigs) -> int:
        _show_each(view.resources, lambda settings: show_configs(settings, everything))
        return int(view.refused)

    return run_view(host, options, ask, show)


@run.command(name="apis")
@host_argument
@click.option(
    "--client",
    "clients",
    multiple=True,
    metavar="CLIENT",
    help='Show the APIs that this client misses, as in "java 2.8".',
)
@all_option
@view_options
def served_apis(host: str, clients: tuple[str, ...], everything: bool, **options: Any) -> int:
    """API versions that nodes serve.

    Compared with the catalog: the release that nodes look like, and the clients they no longer serve.
    """
    from kafkascope.cli.describe.apis import show_apis
    from kafkascope.client.describe.apis import describe_apis, parse_client

    known_clients = [parse_client(client) for client in clients]

    async def ask(cluster: "Cluster") -> "ApisView":
        return await describe_apis(cluster, known_clients)

    return run_view(host, options, ask, lambda view: show_apis(view, everything))


def _view_groups(
    host: str,
    options: dict[str, Any],
    named: tuple[str, ...],
    types: tuple[str, ...],
    describe: "Callable[[Cluster, str], Awaitable[Any]]",
    show: "Callable[[Any], None]",
) -> int:
    """Shows the named groups, or every group of these types."""
    from kafkascope.client.describe.groups import describe_groups

    async def ask(cluster: "Cluster") -> SeveralGroups:
        if named:
            return SeveralGroups(*await describe_several(named, lambda name: describe(cluster, name)))
        listing = await describe_groups(cluster, types, members=False)
        names = [group.group_id for group in listing.groups]
        return SeveralGroups(*await describe_several(names, lambda name: describe(cluster, name)), listing.lacks)

    return run_view(host, options, ask, lambda view: _show_groups(view, show))


def _show_groups(view: SeveralGroups, show: "Callable[[Any], None]") -> int:
    from kafkascope.cli.describe.gaps import show_gaps, show_refused

    _show_each(view.groups, show)
    if not view.groups and not view.refused:
        print(f"No groups of this type{' that we can see' if view.gaps else ''}.")
    show_gaps(view.gaps)
    return show_refused(view.refused)


def _show_each(views: "Sequence[Any]", show: "Callable[[Any], None]") -> None:
    for number, view in enumerate(views):
        if number:
            print()
        show(view)
