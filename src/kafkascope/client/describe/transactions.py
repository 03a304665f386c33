"""Every coordinator's transactions in, one list out: state, producer, how long each is open, what it holds up."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkascope.client.describe.gaps import Gap, gap, merged, not_served, refused
from kafkascope.client.describe.values import Assigned, Node
from kafkascope.errors import RefusedError, UsageError

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
# A node that says so of a transactional id does not coordinate it: another may know it.
NOT_COORDINATOR_HERE = frozenset((14, 15, 16))
TRANSACTIONAL_ID_NOT_FOUND = 105


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
    """Brokers leave out those that we may not describe, and do not say so. `refused` are the errors of those that were
    asked for by id: nobody knows it, or it may not be described."""

    transactions: tuple[Transaction, ...]
    refused: tuple[str, ...]
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
    """Those of these ids and states; none given means all. RefusedError where ids are given, and nothing is left."""
    from kafkascope.client.describe.asking import brokers_only, each_node, lacking
    from kafkascope.client.targets import Node as NodeTarget

    brokers_only(cluster, "transactions")
    lack = await lacking(cluster, "ListTransactions", "transactions")
    if lack is not None:
        return Transactions((), (), (not_served(lack.what, lack.api, lack.detail),))
    ids = tuple(ids)
    wanted = set(ids)
    filters = {"stateFilters": known_states(states)}
    # to ask where an id is coordinated would create the coordinators' topic: every node is asked for those not listed
    known: set[str] = set()
    said: dict[str, tuple[Gap, Node]] = {}

    async def ask(node: Node) -> tuple[list[Transaction], list[Gap]]:
        answer = await cluster.call("ListTransactions", filters, to=NodeTarget(node.node_id))
        value = answer.value
        if value["errorCode"]:
            return [], [gap(f"transactions of node {node.node_id}", "ListTransactions", value["errorCode"])]
        rows = [one for one in value["transactionStates"] if not wanted or one["transactionalId"] in wanted]
        found = {one["transactionalId"] for one in rows}
        known.update(found)
        for name, lack in (await _unlisted(cluster, node, wanted - found)).items():
            if lack is None:
                known.add(name)
            elif lack.code not in NOT_COORDINATOR_HERE:
                said[name] = (lack, node)
        return await _described(cluster, node, rows)

    answers, gaps = await each_node(cluster, "transactions", "ListTransactions", ask)
    found = [one for some, _ in answers.values() for one in some]
    gaps += [one for _, more in answers.values() for one in more]
    refusals = [_refused(name, said.get(name)) for name in dict.fromkeys(ids) if name not in known]
    if refusals and not found:
        raise refusals[0]
    ordered = tuple(sorted(found, key=lambda one: one.transactional_id))
    return Transactions(ordered, tuple(map(str, refusals)), merged(gaps))


def _refused(name: str, said: tuple[Gap, Node] | None) -> RefusedError:
    if said is not None and said[0].needs:
        return refused(said[0], said[1].address)
    detail = f"there is no transactional id {name}"
    lack = gap(f"transaction {name}", "DescribeTransactions", TRANSACTIONAL_ID_NOT_FOUND, name, detail)
    return refused(lack if said is None or said[0].code == lack.code else said[0], said[1].address if said else "")


async def _unlisted(cluster: "Cluster", node: Node, names: Iterable[str]) -> dict[str, Gap | None]:
    """What a node says of ids that it did not list; None where it knows it, in another state than was asked for."""
    from kafkascope.client.targets import Node as NodeTarget

    wanted = sorted(names)
    if not wanted:
        return {}
    answer = await cluster.call("DescribeTransactions", {"transactionalIds": wanted}, to=NodeTarget(node.node_id))
    return {
        one["transactionalId"]: gap(
            f"transaction {one['transactionalId']}", "DescribeTransactions", one["errorCode"], one["transactionalId"]
        )
        if one["errorCode"]
        else None
        for one in answer.value["transactionStates"]
    }


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
