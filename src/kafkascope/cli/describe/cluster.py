"""Prints a `ClusterView`, a `FeaturesView` and a `TransactionList`."""

from collections.abc import Sequence

from kafkascope.cli.describe.gaps import show_gaps, show_refused
from kafkascope.cli.describe.share import held
from kafkascope.cli.tables import Cell, Content, bad, good, grid
from kafkascope.cli.terminal import heading, paint, prose, remark, title
from kafkascope.client.describe.cluster import ClusterView
from kafkascope.client.describe.features import Feature, FeaturesView
from kafkascope.client.describe.transactions import Transaction, TransactionList
from kafkascope.formatting import UNKNOWN_VALUE, count, first_names, number, span

_MOST_NAMED = 10


def show_cluster(view: ClusterView) -> None:
    level = f"metadata.version {view.metadata_version}" if view.metadata_version else ""
    title(f"Cluster {view.cluster_id or 'without an id'}", level)
    print()
    rows: list[tuple[Content, ...]] = [
        (
            node.node_id,
            node.address or "?",
            ", ".join(node.roles if view.roles_known else (*node.roles, UNKNOWN_VALUE)),
            node.rack,
            bad("fenced") if node.fenced else "",
            Cell("active controller", ("bold",)) if node.node_id == view.controller_id else "",
        )
        for node in view.nodes
    ]
    grid(("node", "address", "roles", "rack", "", "leads"), rows, "node")
    print()
    if view.topics is not None and view.partitions is not None:
        whose = "" if "Describe" in view.operations else " that we may describe"
        print(f"  {count(view.topics, 'topic')}, {count(view.partitions, 'partition')}{whose}")
    else:
        print("  Only brokers know topics and brokers; these nodes are controllers.")
    _named("without a leader", view.without_leader)
    _named("under-replicated", view.under_replicated)
    if view.operations:
        remark(f"Our permissions on the cluster: {', '.join(view.operations)}.", "  ")
    show_gaps(view.gaps)


def _named(what: str, names: Sequence[str]) -> None:
    if names:
        prose(f"{paint(f'{len(names)} {what}', 'red')}: {first_names(names, _MOST_NAMED)}", "    ", "  ")


def show_features(view: FeaturesView) -> None:
    title("Features", "" if view.epoch is None else f"finalized epoch {view.epoch}")
    if not view.features:
        remark("These brokers report none.")
    else:
        print()
    rows: list[tuple[Content, ...]] = [
        (feature.name, _level(feature), f"{feature.highest}", _supported(feature)) for feature in view.features
    ]
    grid(("feature", "level", "possible", "nodes support"), rows, "possible")
    show_gaps(view.gaps)


def _level(feature: Feature) -> Cell:
    if feature.level is None:
        return Cell("off", ("dim",))
    text = f"{feature.level}" + (f" ({feature.release})" if feature.release else "")
    return good(text) if feature.level >= feature.highest else Cell(text, ("yellow",))


def _supported(feature: Feature) -> str:
    """One range if all nodes agree."""
    ranges: dict[str, list[str]] = {}
    for node in feature.supported:
        ranges.setdefault(f"{node.min_level}-{node.max_level}", []).append(str(node.node.node_id))
    if len(ranges) == 1:
        return next(iter(ranges))
    return "; ".join(f"{levels} on {', '.join(nodes)}" for levels, nodes in ranges.items())


def show_transactions(view: TransactionList) -> int:
    title(count(len(view.transactions), "transaction"))
    if view.transactions:
        print()
    grid(
        ("transactional id", "state", "producer", "node", "open", "timeout", "partitions"),
        [_row(transaction) for transaction in view.transactions],
        "producer,node,open,timeout",
    )
    late = [transaction.transactional_id for transaction in view.transactions if transaction.overdue]
    if late:
        heading("Overdue")
        prose(
            f"{', '.join(late)}: open beyond the timeout and not aborted. Consumers that read committed records wait "
            "for it. If no coordinator knows it, end it with kafka-transactions.sh find-hanging and abort.",
            "  ",
        )
    remark("Brokers leave out transactions that we may not describe.") if not view.transactions else None
    show_gaps(view.gaps)
    return show_refused(view.refused)


def _row(transaction: Transaction) -> tuple[Content, ...]:
    return (
        transaction.transactional_id,
        bad(transaction.state) if transaction.overdue else transaction.state,
        f"{transaction.producer_id}"
        + ("" if transaction.producer_epoch is None else f" ({transaction.producer_epoch})"),
        transaction.coordinator.node_id,
        "" if transaction.age_ms is None else span(transaction.age_ms),
        "" if transaction.timeout_ms is None else span(transaction.timeout_ms),
        held(transaction.partitions) if transaction.partitions else number(None, "none"),
    )
