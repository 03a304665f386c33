"""Collects signs of trouble from the marts about log directories. Each row is read once; their order doesn't matter."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from kafkascope.health.findings.episodes import MINUTE_US, Episode, Signs
from kafkascope.health.findings.quorum import of_cluster
from kafkascope.health.findings.rules.rule import Limits

Row = Mapping[str, Any]
_TROUBLE = ("damaged_bytes", "bad_crc", "quarantined", "differing_batches", "missing_records")


def partition_name(row: Row) -> str:
    return f"{row['topic']}-{row['partition']}"


def _cluster(row: Row) -> tuple[str, str] | None:
    """The parent of many partitions in the same trouble."""
    return ("cluster", row["cluster_id"]) if row["cluster_id"] else None


def _replica(row: Row) -> str:
    broker = "an unknown node" if row["broker"] is None else f"node {row['broker']}"
    return of_cluster(f"{partition_name(row)} on {broker}", row["cluster_id"])


def replicas(rows: Iterable[Row], signs: Signs) -> int:
    """Returns until when the brokers wrote their own topics: the time of findings that have no other."""
    troubled, end = [], 0
    for row in rows:
        if row["topic"].startswith("__"):
            end = max(end, row["latest_at"] or 0)
        if (
            row["damaged_bytes"]
            or row["bad_crc"]
            or row["quarantined"]
            or row["differing_batches"]
            or row["missing_records"]
        ):
            troubled.append(dict(row))
    for row in troubled:
        subject, parent = _replica(row), _cluster(row)
        if row["damaged_bytes"] or row["bad_crc"] or row["quarantined"]:
            episode = signs.of("log_damaged", subject, end, parent=parent)
            episode.add("places", max(row["quarantined"] or 0, row["bad_crc"] or 0, 1))
            episode.add("damaged_bytes", row["damaged_bytes"] or 0)
            episode.add("bad_crc", row["bad_crc"] or 0)
        if row["differing_batches"]:
            episode = signs.of("log_replicas_differ", subject, end, parent=parent)
            episode.add("batches", row["differing_batches"])
            episode.sample("offsets", row["differs_from"] or 0, str(row["differs_from"]))
        if row["missing_records"]:
            episode = signs.of("log_replica_short", subject, end, parent=parent)
            episode.most("records", row["missing_records"])
            episode.most("end_offset", row["end_offset"] or 0)
    return end


def waste(rows: Iterable[Row], at: int, signs: Signs, limits: Mapping[str, Limits]) -> None:
    """Types of one partition count together."""
    least = limits["log_compaction_behind"]["bytes"]
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    parents: dict[str, tuple[str, str] | None] = {}
    for row in rows:
        subject = _replica(row)
        parents[subject] = _cluster(row)
        for name in ("bytes", "superseded_bytes", "superseded", "expired_tombstones"):
            sums[subject][name] += row[name] or 0
    for subject, numbers in sums.items():
        if numbers["superseded_bytes"] >= least:
            episode = signs.of("log_compaction_behind", subject, at, parent=parents[subject])
            for name, number in numbers.items():
                episode.add(name, number)


def partitions(rows: Iterable[Row], read_at: int, signs: Signs) -> None:
    """Rows of `metadata_at` about partitions that had no leader, or fewer replicas in sync than they have. What still
    holds at the end lasts until the disks were read."""
    held: list[tuple[str, Row]] = []
    end = read_at
    for row in rows:
        if row["kind"] != "partition":
            continue
        end = max(end, row["from_at"] or 0, row["to_at"] or 0)
        if row["leader"] is None:
            held.append(("partition_leaderless", dict(row)))
        elif len(row["isr"] or ()) < len(row["replicas"] or ()):
            held.append(("partition_under_replicated", dict(row)))
    for rule, row in held:
        from_at = row["from_at"] or 0
        episode = signs.of(rule, of_cluster(partition_name(row), row["cluster_id"]), from_at,
                           end if row["to_at"] is None else row["to_at"], _cluster(row))  # fmt: skip
        episode.add("changes")
        if row["to_offset"] is None:
            episode.add("still")
        for node in {*(row["replicas"] or ())} - {*(row["isr"] or ())}:
            episode.name("missing", f"node {node}")


def leader_changes(rows: Iterable[Row], signs: Signs, limits: Mapping[str, Limits]) -> None:
    times: defaultdict[tuple[str, tuple[str, str] | None], list[tuple[int, str]]] = defaultdict(list)
    for row in rows:
        if row["kind"] != "leader":
            continue
        leader = "nobody" if row["to_leader"] is None else f"node {row['to_leader']}"
        subject = of_cluster(partition_name(row), row["cluster_id"]), _cluster(row)
        times[subject].append((row["occurred_at"] or 0, leader))
    limit = limits["partition_leader_changes"]
    width, number = limit["minutes"] * MINUTE_US, max(1, round(limit["changes"]))
    for (partition, parent), changes in times.items():
        changes.sort()
        within: set[int] = set()
        for last in range(number - 1, len(changes)):
            if changes[last][0] - changes[last - number + 1][0] <= width:
                within.update(range(last - number + 1, last + 1))
        for index in sorted(within):
            at, leader = changes[index]
            until = changes[index + 1][0] if index + 1 in within else at
            episode = signs.of("partition_leader_changes", partition, at, min(until, int(at + width)), parent)
            episode.add("changes")
            episode.name("leaders", leader)


def transactions(rows: Iterable[Row], signs: Signs) -> None:
    for row in rows:
        if not row["holds_stable_offset"]:
            continue
        rule = "transaction_hanging" if row["hanging"] else "transaction_open"
        subject = of_cluster(partition_name(row), row["cluster_id"])
        started = row["started_at"] or row["read_at"] or 0
        episode = signs.of(rule, subject, started, row["read_at"], _cluster(row))
        episode.most("open_ms", max(row["open_ms"] or 0, 0))
        episode.most("waiting", (row["log_end_offset"] or row["first_offset"]) - row["first_offset"])
        episode.most("timeout_ms", row["timeout_ms"])
        episode.name("producers", str(row["producer_id"]))
        episode.name("transactional_ids", row["transactional_id"])
        episode.sample("offsets", row["first_offset"], str(row["first_offset"]))


def groups(rows: Iterable[Row], signs: Signs) -> None:
    for row in rows:
        group, at, end = row["group_id"], row["last_commit_at"], row["read_at"]
        episode = signs.of("group_silent", group, at, end)
        _about(episode, row)
        if row["topics_gone"]:
            episode = signs.of("group_topics_gone", group, at, end)
            _about(episode, row)
            for topic in row["topics_gone"]:
                episode.name("topics", topic)


def _about(episode: Episode, row: Row) -> None:
    episode.most("silent_ms", row["silent_ms"])
    episode.most("partitions", row["partitions"])
    episode.most("lag", row["lag_now"])
    episode.most("members", row["members"])


def agreements(rows: Iterable[Row], at: int, signs: Signs) -> None:
    """Rows where the two differ."""
    for row in rows:
        if row["verdict"] == "agree":
            continue
        topic = row["topic"] or row["topic_id"]
        subject = f"{row['group_id']}/{topic}-{row['partition']}"
        episode = signs.of("log_share_state_differs", subject, at, parent=("share_group", row["group_id"]))
        records = row["last_offset"] - row["first_offset"] + 1
        episode.add(row["verdict"], records)
        offsets = f"{row['first_offset']}-{row['last_offset']}" if records > 1 else str(row["first_offset"])
        episode.sample("offsets", row["first_offset"], offsets)
        episode.name("states", row["state"])
