"""Prints a `QuorumView`: the leader, every replica with its lag and times, and replicas that fall behind."""

from kafkascope.cli.describe.gaps import show_gaps
from kafkascope.cli.tables import Cell, Content, bad, good, grid, odd
from kafkascope.cli.terminal import heading, paint, prose, remark, title
from kafkascope.client.describe.quorum import QuorumView, ReplicaView
from kafkascope.formatting import number, span


def show_quorum(view: QuorumView) -> None:
    title(
        f"Quorum, led by node {view.controller_id}",
        f"epoch {view.leader_epoch}, high watermark {number(view.high_watermark)}"
        + (f", cluster {view.cluster_id}" if view.cluster_id else ""),
    )
    print()
    head = ("node", "role", "log end", "lag", "time lag", "last fetch", "last caught up", "")
    replicas = (*view.voters, *view.observers)
    grid(head, [_row(replica, view) for replica in replicas], "node,log end,lag,time lag,last fetch,last caught up")
    rows = [(replica.node_id, replica.directory_id, ", ".join(replica.endpoints)) for replica in replicas]
    if any(row[1] or row[2] for row in rows):
        print()
        grid(("node", "directory", "endpoints"), rows, "node")
    print()
    timeout = f"The fetch timeout is {span(view.fetch_timeout_ms)}" + (
        "." if view.fetch_timeout_known else ", Kafka's default; the setting of this cluster isn't known."
    )
    remark(f"{timeout} A follower waits up to half a second in each fetch.")
    if view.troubles:
        heading("Falls behind")
    for trouble in view.troubles:
        prose(paint(trouble.summary, "red" if trouble.severity == "critical" else "yellow"), "  ")
        remark(trouble.advice, "    ")
    show_gaps(view.gaps)


def _row(replica: ReplicaView, view: QuorumView) -> tuple[Content, ...]:
    if replica.role == "leader":
        return (replica.node_id, Cell("leader", ("bold",)), number(replica.log_end_offset), "", "", "", "", "")
    state = good("in time")
    if replica.lag is None:
        state = odd("has not fetched from this leader")
    elif replica.behind:
        state = bad("falls behind")
    return (
        replica.node_id,
        replica.role,
        number(replica.log_end_offset),
        number(replica.lag),
        _span(replica.lag_ms),
        _ago(replica.fetch_age_ms),
        _ago(None if replica.last_caught_up_timestamp is None else _age(replica, view)),
        state,
    )


def _age(replica: ReplicaView, view: QuorumView) -> int | None:
    leader = next((voter for voter in view.voters if voter.role == "leader"), None)
    if leader is None or leader.last_caught_up_timestamp is None or replica.last_caught_up_timestamp is None:
        return None
    return leader.last_caught_up_timestamp - replica.last_caught_up_timestamp


def _span(milliseconds: int | None) -> str:
    return "?" if milliseconds is None else span(milliseconds)


def _ago(milliseconds: int | None) -> str:
    return "?" if milliseconds is None else f"{span(max(0, milliseconds))} ago"
