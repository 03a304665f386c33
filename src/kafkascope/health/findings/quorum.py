"""Collects signs of trouble from the marts about the quorum. Each row is read once; their order doesn't matter."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from kafkascope.health.findings.episodes import MINUTE_US, Signs
from kafkascope.health.findings.rules.rule import Limits

Row = Mapping[str, Any]
QUORUM = "quorum"


def node(number: int | None) -> str:
    return "nobody" if number is None else f"node {number}"


def of_cluster(subject: str, cluster: str | None) -> str:
    """Names the cluster in the subject: a lake may hold several, whose nodes share numbers. A cluster of unknown id is
    named by the address that was queried."""
    if cluster is None:
        return subject
    return f"{subject} at {cluster}" if ":" in cluster else f"{subject} of cluster {cluster}"


# A cluster, if known, and the epoch of one of its leaders.
_Epoch = tuple[str | None, int]


def replicas(rows: Iterable[Row], signs: Signs, limits: Mapping[str, Limits]) -> None:
    follower_ms = limits["quorum_follower_behind"]["ms"]
    observer_ms = limits["quorum_observer_behind"]["ms"]
    voters: defaultdict[_Epoch, set[int]] = defaultdict(set)
    behind: Counter[tuple[_Epoch, int]] = Counter()  # epoch and time to the number of voters behind
    proofs: dict[tuple[_Epoch, int], str | None] = {}
    unknown: defaultdict[tuple[_Epoch, int], list[tuple[int, str | None]]] = defaultdict(list)
    for row in rows:
        cluster, role, replica, at = row.get("cluster_id"), row["role"], row["replica_id"], row["observed_at"]
        epoch = (cluster, row["leader_epoch"])
        if role == "leader" or role == "follower":
            voters[epoch].add(replica)
        if role == "leader":
            continue
        if row["lag"] is None:
            unknown[epoch, replica].append((at, row["exchange_id"]))
            continue
        age = max(row["fetch_age_ms"] or 0, row["lag_ms"] or 0)
        if age < (follower_ms if role == "follower" else observer_ms):
            continue
        rule = "quorum_follower_behind" if role == "follower" else "quorum_observer_behind"
        # It has been behind since its last sign of life.
        episode = signs.of(rule, of_cluster(node(replica), cluster), at - age * 1000, at)
        episode.add("observations")
        for name in ("fetch_age_ms", "lag_ms", "lag"):
            episode.most(name, row[name])
        episode.name("leaders", node(row["leader_id"]))
        episode.prove(at, row["exchange_id"])
        if role == "follower":
            behind[epoch, at] += 1
            proofs[epoch, at] = row["exchange_id"]
    _never_fetched(unknown, voters, behind, proofs, signs, limits["quorum_replica_never_fetched"]["ms"])
    for (epoch, at), number in behind.items():
        if number * 2 >= len(voters[epoch]):
            episode = signs.of("quorum_majority_at_risk", of_cluster(QUORUM, epoch[0]), at)
            episode.add("observations")
            episode.most("behind", number)
            episode.most("voters", len(voters[epoch]))
            episode.prove(at, proofs.get((epoch, at)))


def _never_fetched(
    unknown: Mapping[tuple[_Epoch, int], list[tuple[int, str | None]]],
    voters: Mapping[_Epoch, set[int]],
    behind: Counter[tuple[_Epoch, int]],
    proofs: dict[tuple[_Epoch, int], str | None],
    signs: Signs,
    after_ms: float,
) -> None:
    """A replica's lag is unknown from a leader's election until the replica fetches: one episode per epoch."""
    for (epoch, replica), seen in unknown.items():
        seen.sort(key=lambda sighting: sighting[0])
        first, last = seen[0][0], seen[-1][0]
        episode = signs.of("quorum_replica_never_fetched", of_cluster(node(replica), epoch[0]), first, last)
        episode.most("unknown_ms", (last - first) // 1000)
        episode.name("leaders", f"of epoch {epoch[1]}")
        episode.prove(*seen[-1])
        for at, exchange_id in seen:
            if replica in voters.get(epoch, ()) and at - first >= after_ms * 1000:
                behind[epoch, at] += 1
                proofs[epoch, at] = exchange_id


_Election = tuple[int, str, str | None, str | None]


def events(rows: Iterable[Row], signs: Signs, limits: Mapping[str, Limits]) -> None:
    elections: defaultdict[str, list[_Election]] = defaultdict(list)
    for row in rows:
        kind, at, exchange_id = row["kind"], row["occurred_at"], row["exchange_id"]
        quorum = of_cluster(QUORUM, row.get("cluster_id"))
        lasted = row["duration_ms"] or 0
        if kind == "elected" and row["previous_leader_id"] is not None:
            elections[quorum].append((at, row["cause"] or "unknown", node(row["node_id"]), exchange_id))
            if row["cause"] in ("lost", "timeout"):
                episode = signs.of("quorum_leader_lost", quorum, at - lasted * 1000, at)
                episode.add("elections")
                episode.most("leaderless_ms", lasted)
                episode.most("voting_ms", row["voting_ms"])
                episode.name("lost_leaders", node(row["previous_leader_id"]))
                episode.name("new_leaders", node(row["node_id"]))
                episode.name("causes", row["cause"])
                episode.prove(at, exchange_id)
        elif kind == "election_failed":
            elections[quorum].append((at, "nobody won", None, exchange_id))
        elif kind == "leaderless":
            episode = signs.of("quorum_leaderless", quorum, at, at + lasted * 1000)
            episode.most("leaderless_ms", lasted)
            episode.name("causes", row["cause"])
        elif kind == "resigned":
            episode = signs.of("quorum_leader_resigned", quorum, at)
            episode.add("resignations")
            episode.name("leaders", node(row["node_id"]))
            episode.prove(at, exchange_id)
        elif kind == "voters_changed":
            episode = signs.of("quorum_voters_changed", quorum, at)
            episode.add("changes")
            episode.sample("voters", at, row["detail"] or "")
            episode.prove(at, exchange_id)
    for quorum, held in elections.items():
        _frequent(quorum, held, signs, limits["quorum_frequent_elections"])


def _frequent(quorum: str, elections: list[_Election], signs: Signs, limits: Limits) -> None:
    """Adds every election of a window that has too many."""
    elections.sort(key=lambda election: election[0])
    width, number = limits["minutes"] * MINUTE_US, max(1, round(limits["elections"]))
    within: set[int] = set()
    for last in range(number - 1, len(elections)):
        if elections[last][0] - elections[last - number + 1][0] <= width:
            within.update(range(last - number + 1, last + 1))
    for index in sorted(within):
        at, cause, leader, exchange_id = elections[index]
        # They share a window, so they stay together whatever the time between them.
        until = elections[index + 1][0] if index + 1 in within else at
        episode = signs.of("quorum_frequent_elections", quorum, at, min(until, int(at + width)))
        episode.add("elections")
        episode.name("causes", cause)
        episode.name("leaders", leader)
        episode.prove(at, exchange_id)
