"""Collects signs of trouble from the marts about streams groups, reading each row once."""

from collections.abc import Iterable, Mapping
from typing import Any

from kafkascope.health.findings.episodes import MINUTE_US, Signs
from kafkascope.health.findings.rules.streams import OTHER_STATUS, STATUS_RULES

Row = Mapping[str, Any]

# The member could have continued to warm up, but the assignment took the task away. If the member itself left, that
# isn't counted.
_DROPPED = frozenset({"revoked", "changed", "rejoined"})


class GroupEnds:
    """Knows when a group's recording ends: what is open lasts until then."""

    def __init__(self, recorded_until: int | None) -> None:
        self._recorded_until = recorded_until
        self._minutes: dict[str, int] = {}

    def see(self, group: str, minute_at: int) -> None:
        self._minutes[group] = max(self._minutes.get(group, minute_at), minute_at)

    def of(self, group: str, at: int) -> int:
        """Errs on the early side: without the rows of `captures`, the recording ends where its last minute begins."""
        minute = self._minutes.get(group, at)
        if self._recorded_until is not None:
            minute = max(minute, min(minute + MINUTE_US, self._recorded_until))
        return max(at, minute)


def minutes(rows: Iterable[Row], signs: Signs, ends: GroupEnds) -> None:
    for row in rows:
        group, at = row["group_id"], row["minute_at"]
        end = at + MINUTE_US
        ends.see(group, at)
        if row["moves"]:
            episode = signs.of("streams_many_moves", group, at, end)
            for name in ("moves", "joined", "left", "lost"):
                episode.add(name, row[name])
            episode.most("tasks", row["tasks"])
            episode.most("pause_max_ms", row["pause_max_ms"])
        if row["standbys_missing"] and row["members"]:
            episode = signs.of("streams_standbys_missing", group, at, end)
            episode.add("minutes")
            episode.most("missing", row["standbys_missing"])
        if row["fenced"]:
            signs.of("streams_fenced_members", group, at, end).add("members", row["fenced"])
        if row["shutdown_requests"]:
            signs.of("streams_shutdown", group, at, end).add("requests", row["shutdown_requests"])


def unheld(rows: Iterable[Row], signs: Signs, ends: GroupEnds) -> None:
    for row in rows:
        if not row["known"] or (row["ended_by"] == "taken" and row["cause"] != "new"):
            continue
        group, since, until = row["group_id"], row["from_at"], row["to_at"]
        end = ends.of(group, since) if until is None else until
        task = f"{row['subtopology_id']}_{row['partition']}"
        episode = signs.of("streams_task_unheld", f"{group}/{task}", since, end, ("streams_group", group))
        episode.most("longest_ms", (end - since) // 1000)
        episode.name("causes", row["cause"])
        episode.name("tasks", task)
        if until is None:
            episode.add("open")
        episode.prove(since, row["exchange_id"])


def moves(rows: Iterable[Row], signs: Signs, shortest_ms: float) -> None:
    for row in rows:
        if row["pause_ms"] < shortest_ms:
            continue
        group, task = row["group_id"], f"{row['subtopology_id']}_{row['partition']}"
        parent = ("streams_group", group)
        episode = signs.of("streams_long_pause", f"{group}/{task}", row["released_at"], row["taken_at"], parent)
        episode.add("moves")
        episode.add("cold", 0 if row["warm"] else 1)
        episode.most("longest_ms", row["pause_ms"])
        episode.name("causes", row["cause"])
        episode.name("tasks", task)
        episode.prove(row["taken_at"], row["exchange_id"])


def lost_members(rows: Iterable[Row], signs: Signs) -> None:
    for row in rows:
        group = row["group_id"]
        episode = signs.of(
            "streams_member_lost",
            f"{group}/{row['member_id']}",
            row["last_seen_at"],
            row["noticed_at"],
            ("streams_group", group),
        )
        for name in ("active_tasks", "standby_tasks", "warmup_tasks"):
            episode.add(name, row[name])
        episode.most("silent_ms", row["silent_ms"])
        episode.name("clients", row["client_id"])
        episode.name("how", row["how"])
        episode.prove(row["last_seen_at"], row["exchange_id"])


def warmups(rows: Iterable[Row], signs: Signs, ends: GroupEnds) -> None:
    for row in rows:
        if row["role"] != "warmup" or row["ended_by"] == "promoted":
            continue
        group, since, until = row["group_id"], row["from_at"], row["to_at"]
        end = ends.of(group, since) if until is None else until
        task = f"{row['subtopology_id']}_{row['partition']}"
        episode = signs.of("streams_warmup_stuck", f"{group}/{task}", since, end, ("streams_group", group))
        episode.most("longest_ms", (end - since) // 1000)
        episode.add("dropped", row["ended_by"] in _DROPPED)
        episode.name("tasks", task)
        episode.name("clients", row["client_id"] or row["member_id"])
        episode.prove(since, row["from_exchange_id"])
        episode.prove(end, row["to_exchange_id"])


def statuses(rows: Iterable[Row], signs: Signs, ends: GroupEnds) -> None:
    for row in rows:
        group, since, until = row["group_id"], row["from_at"], row["to_at"]
        end = ends.of(group, since) if until is None else until
        rule = STATUS_RULES.get(row["name"], OTHER_STATUS)
        episode = signs.of(rule, group, since, end)
        episode.add("statuses")
        episode.most("longest_ms", (end - since) // 1000)
        episode.most("members", row["members"])
        if rule == OTHER_STATUS:
            episode.name("names", row["name"])
        episode.sample("details", since, row["detail"] or row["name"])
        episode.prove(since, row["exchange_id"])
