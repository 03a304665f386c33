"""Lists the transactions of every coordinator: state, producer, age, and the partitions they hold up."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.gaps import Gap, error_gap, merge_gaps, not_served_gap, refused_error
from kafkascope.client.describe.values import NodeAddress, TopicAssignment
from kafkascope.errors import RefusedError, UsageError

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

_OPEN = "Ongoing"
_STATES = (
    *("Empty", _OPEN, "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"),
    *("PrepareEpochFence", "Dead"),
)
# transaction.abort.timed.out.transaction.cleanup.interval.ms: how often a coordinator looks for overdue transactions
CLEANUP_MS = 10_000
_BATCH = 100
# Errors of a node that doesn't coordinate a transactional id: another node may know it.
_NOT_COORDINATOR = frozenset((14, 15, 16))
_TRANSACTIONAL_ID_NOT_FOUND = 105


@dataclass(frozen=True, slots=True)
class Transaction:
    """Times are the coordinator's, in milliseconds; None if it hasn't begun or may not be described. `overdue`: open
    for longer than its timeout, and still not aborted."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int | None
    coordinator: NodeAddress
    timeout_ms: int | None
    started_timestamp: int | None
    age_ms: int | None
    overdue: bool
    partitions: tuple[TopicAssignment, ...]


@dataclass(frozen=True, slots=True)
class TransactionList:
    """Brokers silently leave out transactions that we may not describe. `refused` are the errors of those requested by
    id: no node knows it, or it may not be described."""

    transactions: tuple[Transaction, ...]
    refused: tuple[str, ...]
    gaps: tuple[Gap, ...]


def transaction_of(
    listed: Mapping[str, Any], described: Mapping[str, Any] | None, coordinator: NodeAddress, now_ms: int
) -> Transaction:
    """`listed` is a row of ListTransactions, `described` one of DescribeTransactions without an error."""
    description = described or {}
    state = description.get("transactionState", listed["transactionState"])
    started = description.get("transactionStartTimeMs", -1)
    begun = started if started >= 0 and state not in ("Empty", "CompleteCommit", "CompleteAbort") else None
    age = None if begun is None else max(0, now_ms - begun)
    timeout = description.get("transactionTimeoutMs")
    return Transaction(
        listed["transactionalId"],
        state,
        listed["producerId"],
        description.get("producerEpoch"),
        coordinator,
        timeout,
        begun,
        age,
        state == _OPEN and age is not None and timeout is not None and age > timeout + CLEANUP_MS,
        tuple(
            sorted(
                (
                    TopicAssignment(row["topic"], tuple(sorted(row["partitions"])))
                    for row in description.get("topics", ())
                ),
                key=lambda topic: topic.topic,
            )
        ),
    )


def parse_states(states: Iterable[str]) -> list[str]:
    """In Kafka's spelling; a broker ignores a state that it doesn't know."""
    spelled = {name.lower(): name for name in _STATES}
    names = []
    for state in states:
        if state.lower() not in spelled:
            raise UsageError(f"no transaction has the state '{state}'; the states are {', '.join(_STATES)}")
        names.append(spelled[state.lower()])
    return names


async def describe_transactions(
    cluster: "Cluster", ids: Iterable[str] = (), states: Iterable[str] = ()
) -> TransactionList:
    """Transactions with these ids and states; none given means all. RefusedError if all of the given ids are
    refused."""
    from kafkascope.client.describe.calls import map_nodes, missing_api_gap, require_brokers
    from kafkascope.client.targets import Node

    require_brokers(cluster, "transactions")
    gap = await missing_api_gap(cluster, "ListTransactions", "transactions")
    if gap is not None:
        return TransactionList((), (), (not_served_gap(gap.what, gap.api, gap.detail),))
    ids = tuple(ids)
    requested = set(ids)
    filters = {"stateFilters": parse_states(states)}
    # looking up a coordinator would create its topic, so every node is asked about ids that aren't listed
    seen: set[str] = set()
    errors: dict[str, tuple[Gap, NodeAddress]] = {}

    async def ask(node: NodeAddress) -> tuple[list[Transaction], list[Gap]]:
        response = await cluster.call("ListTransactions", filters, to=Node(node.node_id))
        value = response.value
        if value["errorCode"]:
            return [], [error_gap(f"transactions of node {node.node_id}", "ListTransactions", value["errorCode"])]
        rows = [row for row in value["transactionStates"] if not requested or row["transactionalId"] in requested]
        listed = {row["transactionalId"] for row in rows}
        seen.update(listed)
        for name, gap in (await _describe_unlisted(cluster, node, requested - listed)).items():
            if gap is None:
                seen.add(name)
            elif gap.code not in _NOT_COORDINATOR:
                errors[name] = (gap, node)
        return await _describe_listed(cluster, node, rows)

    results, gaps = await map_nodes(cluster, "transactions", "ListTransactions", ask)
    transactions = [transaction for of_node, _ in results.values() for transaction in of_node]
    gaps += [gap for _, of_node in results.values() for gap in of_node]
    refusals = [_refusal(name, errors.get(name)) for name in dict.fromkeys(ids) if name not in seen]
    if refusals and not transactions:
        raise refusals[0]
    ordered = tuple(sorted(transactions, key=lambda transaction: transaction.transactional_id))
    return TransactionList(ordered, tuple(map(str, refusals)), merge_gaps(gaps))


def _refusal(name: str, error: tuple[Gap, NodeAddress] | None) -> RefusedError:
    if error is not None and error[0].needs:
        return refused_error(error[0], error[1].address)
    detail = f"there is no transactional id {name}"
    not_found = error_gap(f"transaction {name}", "DescribeTransactions", _TRANSACTIONAL_ID_NOT_FOUND, name, detail)
    return refused_error(
        not_found if error is None or error[0].code == not_found.code else error[0], error[1].address if error else ""
    )


async def _describe_unlisted(cluster: "Cluster", node: NodeAddress, names: Iterable[str]) -> dict[str, Gap | None]:
    """The gaps for ids that a node didn't list; None if it knows the id, in a state that wasn't requested."""
    from kafkascope.client.targets import Node

    requested = sorted(names)
    if not requested:
        return {}
    response = await cluster.call("DescribeTransactions", {"transactionalIds": requested}, to=Node(node.node_id))
    return {
        row["transactionalId"]: error_gap(
            f"transaction {row['transactionalId']}", "DescribeTransactions", row["errorCode"], row["transactionalId"]
        )
        if row["errorCode"]
        else None
        for row in response.value["transactionStates"]
    }


async def _describe_listed(
    cluster: "Cluster", node: NodeAddress, rows: list[Mapping[str, Any]]
) -> tuple[list[Transaction], list[Gap]]:
    from kafkascope.client.targets import Node

    transactions: list[Transaction] = []
    gaps: list[Gap] = []
    for start in range(0, len(rows), _BATCH):
        batch = {row["transactionalId"]: row for row in rows[start : start + _BATCH]}
        response = await cluster.call("DescribeTransactions", {"transactionalIds": list(batch)}, to=Node(node.node_id))
        descriptions = {}
        for row in response.value["transactionStates"]:
            name = row["transactionalId"]
            if row["errorCode"]:
                gaps.append(error_gap(f"transaction {name}", "DescribeTransactions", row["errorCode"], name))
            else:
                descriptions[name] = row
        now_ms = response.received_at // 1_000_000
        transactions += [transaction_of(row, descriptions.get(name), node, now_ms) for name, row in batch.items()]
    return transactions, gaps
