"""Every coordinator's transactions in, one list out: state, producer, how long each is open, what it holds up."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.gaps import Gap, gap, merged, not_served
from kafkascope.client.describe.values import Assigned, Node
from kafkascope.errors import UsageError

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

OPEN = "Ongoing"
STATES = (
    *("Empty", OPEN, "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"),
    *("PrepareEpochFence", "Dead"),
)
# transaction.abort.timed.out.transaction.cleanup.interval.ms: so often a coordinator looks for those past their time
CLEANUP_MS = 10_000
BATCH = 100


@dataclass(frozen=True, slots=True)
class Transaction:
    """Times are the coordinator's, in milliseconds; None of one that has not begun or may not be described.
    `overdue`: open for longer than its timeout, and still not aborted."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int | None
    coordinator: Node
    timeout_ms: int | None
    started_timestamp: int | None
    age_ms: int | None
    overdue: bool
    partitions: tuple[Assigned, ...]


@dataclass(frozen=True, slots=True)
class Transactions:
    """Brokers leave out those that we may not describe, and do not say so."""

    transactions: tuple[Transaction, ...]
    gaps: tuple[Gap, ...]


def transaction_of(
    listed: Mapping[str, Any], described: Mapping[str, Any] | None, coordinator: Node, now_ms: int
) -> Transaction:
    """`listed` is a row of ListTransactions, `described` one of DescribeTransactions without an error."""
    told = described or {}
    state = told.get("transactionState", listed["transactionState"])
    started = told.get("transactionStartTimeMs", -1)
    begun = started if started >= 0 and state not in ("Empty", "CompleteCommit", "CompleteAbort") else None
    age = None if begun is None else max(0, now_ms - begun)
    timeout = told.get("transactionTimeoutMs")
    return Transaction(
        listed["transactionalId"],
        state,
        listed["producerId"],
        told.get("producerEpoch"),
        coordinator,
        timeout,
        begun,
        age,
        state == OPEN and age is not None and timeout is not None and age > timeout + CLEANUP_MS,
        tuple(
            sorted(
                (Assigned(one["topic"], tuple(sorted(one["partitions"]))) for one in told.get("topics", ())),
                key=lambda one: one.topic,
            )
        ),
    )


def known_states(states: Iterable[str]) -> list[str]:
    """In Kafka's spelling; a broker that does not know a state filters by nothing."""
    spelled = {one.lower(): one for one in STATES}
    found = []
    for state in states:
        if state.lower() not in spelled:
            raise UsageError(f"no transaction has the state '{state}'; there are {', '.join(STATES)}")
        found.append(spelled[state.lower()])
    return found


async def describe_transactions(
    cluster: "Cluster", ids: Iterable[str] = (), states: Iterable[str] = ()
) -> Transactions:
    """Those of these ids and states; none given means all."""
    from kafkascope.client.describe.asking import brokers_only, each_node, lacking
    from kafkascope.client.targets import Node as NodeTarget

    brokers_only(cluster, "transactions")
    lack = await lacking(cluster, "ListTransactions", "transactions")
    if lack is not None:
        return Transactions((), (not_served(lack.what, lack.api, lack.detail),))
    wanted = set(ids)
    filters = {"stateFilters": known_states(states)}

    async def ask(node: Node) -> tuple[list[Transaction], list[Gap]]:
        answer = await cluster.call("ListTransactions", filters, to=NodeTarget(node.node_id))
        value = answer.value
        if value["errorCode"]:
            return [], [gap(f"transactions of node {node.node_id}", "ListTransactions", value["errorCode"])]
        rows = [one for one in value["transactionStates"] if not wanted or one["transactionalId"] in wanted]
        return await _described(cluster, node, rows)

    answers, gaps = await each_node(cluster, "transactions", "ListTransactions", ask)
    found = [one for some, _ in answers.values() for one in some]
    gaps += [one for _, more in answers.values() for one in more]
    return Transactions(tuple(sorted(found, key=lambda one: one.transactional_id)), merged(gaps))


async def _described(
    cluster: "Cluster", node: Node, rows: list[Mapping[str, Any]]
) -> tuple[list[Transaction], list[Gap]]:
    from kafkascope.client.targets import Node as NodeTarget

    found: list[Transaction] = []
    gaps: list[Gap] = []
    for at in range(0, len(rows), BATCH):
        some = {one["transactionalId"]: one for one in rows[at : at + BATCH]}
        answer = await cluster.call(
            "DescribeTransactions", {"transactionalIds": list(some)}, to=NodeTarget(node.node_id)
        )
        told = {}
        for one in answer.value["transactionStates"]:
            name = one["transactionalId"]
            if one["errorCode"]:
                gaps.append(gap(f"transaction {name}", "DescribeTransactions", one["errorCode"], name))
            else:
                told[name] = one
        now_ms = answer.received_at // 1_000_000
        found += [transaction_of(one, told.get(name), node, now_ms) for name, one in some.items()]
    return found, gaps
