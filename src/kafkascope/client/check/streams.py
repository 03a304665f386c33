"""Checks a streams group for missing topics, tasks that no member holds, and stale topologies."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from kafkascope.client.check.groups import group_metrics
from kafkascope.client.check.openmetrics import MetricFamilies
from kafkascope.client.check.verdicts import (
    CheckLimits,
    CheckResult,
    Snapshot,
    check_result,
    lag_problems,
    member_problems,
    rule_problems,
)
from kafkascope.client.describe.streams_values import StreamsGroupView
from kafkascope.client.describe.streams_waits import ROLES
from kafkascope.formatting import count
from kafkascope.health.findings.recordings import OBSERVED
from kafkascope.health.streams.events import STATUS_NAMES, StreamsEvent
from kafkascope.health.streams.group_health import health_of
from kafkascope.health.streams.rows import GroupStatus
from kafkascope.health.streams.timeline import timeline_of

# Statuses need one look, the others compare looks. Whether a member left or was lost only shows in its heartbeats, not
# in a description.
RULES = (
    "streams_missing_source_topics",
    "streams_incorrectly_partitioned_topics",
    "streams_missing_internal_topics",
    "streams_stale_topology",
    "streams_task_unheld",
    "streams_long_pause",
    "streams_many_moves",
    "streams_standbys_missing",
    "streams_warmup_stuck",
)
_STANDBYS = "streams.num.standby.replicas"
_CODES = {name: code for code, name in STATUS_NAMES.items()}


def check_streams_group(snapshots: Sequence[Snapshot[StreamsGroupView]], limits: CheckLimits) -> CheckResult:
    now = snapshots[-1].view
    timeline = timeline_of(event for number, snapshot in enumerate(snapshots) for event in _events(snapshot, number))
    assert timeline is not None
    marts: dict[str, Iterable[Any]] = {
        "streams_tasks": timeline.tasks,
        "streams_moves": timeline.moves,
        "streams_unheld": timeline.unheld,
        "streams_lost_members": timeline.lost,
        "streams_group_health": health_of(timeline),
        "streams_statuses": _statuses(snapshots),
    }
    rows = {name: [asdict(row) for row in mart] for name, mart in marts.items()}
    # Open intervals last until the last look.
    looked = {"capture_uri": "looks", "kind": OBSERVED, "first_at": snapshots[0].at, "last_at": snapshots[-1].at}
    rows["captures"] = [{**looked, **dict.fromkeys(("frames", "lost_bytes", "tls_bytes", "tcp_bytes"), 0)}]
    problems = rule_problems(rows, RULES, limits)
    problems += lag_problems(
        now.lag, None, f"The lag of streams group {now.group_id}", CheckLimits(max_lag=limits.max_lag)
    )
    problems += member_problems(len(now.members), f"Streams group {now.group_id}", limits)
    lag = "lag unknown" if now.lag is None else f"lag {now.lag:,}"
    waits = f"; the rebalance waits: {now.waits[0]}" if now.waits else ""
    summary = (
        f"{now.state}, {count(len(now.members), 'member')}, {count(_active_tasks(now), 'active task')}, {lag}{waits}"
    )
    figures: dict[str, int | str | None] = {
        "state": now.state,
        "members": len(now.members),
        "activeTasks": _active_tasks(now),
        "lag": now.lag,
        "groupEpoch": now.group_epoch,
        "assignmentEpoch": now.assignment_epoch,
        "topologyEpoch": now.topology_epoch,
    }
    return check_result("streams-group", f"streams group {now.group_id}", summary, problems, limits, figures, now.gaps)


def _active_tasks(now: StreamsGroupView) -> int:
    return sum(len(member.assignment.active) for member in now.members)


def _statuses(snapshots: Sequence[Snapshot[StreamsGroupView]]) -> Iterator[GroupStatus]:
    """The last look's statuses, each since the first of the consecutive looks that have it."""
    last = snapshots[-1]
    for status in last.view.statuses:
        since = last.at
        for snapshot in reversed(snapshots):
            if all(other.name != status.name for other in snapshot.view.statuses):
                break
            since = snapshot.at
        yield GroupStatus(
            last.view.group_id, _CODES.get(status.name, -1), status.name, status.detail, since, last.at,
            len(last.view.members), None,
        )  # fmt: skip


def _events(snapshot: Snapshot[StreamsGroupView], number: int) -> Iterator[StreamsEvent]:
    """The response as rows that the marts read: the members first, the group last."""
    view, group, at, exchange = snapshot.view, snapshot.view.group_id, snapshot.at, f"look {number}"
    for process in view.processes:
        for member in process.members:
            yield StreamsEvent(
                "described_member",
                at,
                0,
                group,
                exchange_id=exchange,
                member_id=member.member_id,
                client_id=member.client_id,
                process_id=process.process_id,
                member_epoch=member.member_epoch,
                topology_epoch=member.topology_epoch,
                active=",".join(member.assignment.active),
                standby=",".join(member.assignment.standby),
                warmup=",".join(member.assignment.warmup),
                target_active=",".join(member.target.active),
                target_standby=",".join(member.target.standby),
                target_warmup=",".join(member.target.warmup),
                endpoint=process.endpoint,
            )
    partitions = {
        part.subtopology_id: max((topic.partitions for topic in part.changelog_topics), default=0)
        for part in view.subtopologies
    }
    yield StreamsEvent(
        "described",
        at,
        1,
        group,
        exchange_id=exchange,
        group_state=view.state,
        group_epoch=view.group_epoch,
        assignment_epoch=view.assignment_epoch,
        topology_epoch=view.topology_epoch,
        topology=",".join(f"{part}={number}" for part, number in partitions.items() if number),
        stateful=",".join(part.subtopology_id for part in view.subtopologies if part.changelog_topics),
        error_code=0,
    )
    standbys = next((setting.value for setting in view.settings if setting.name == _STANDBYS), None)
    if standbys is not None and standbys.isdigit():
        yield StreamsEvent("config", at, 2, group, value=int(standbys))


def streams_group_metrics(now: StreamsGroupView, families: MetricFamilies) -> None:
    group_metrics(families, now.group_id, "streams", now.state, len(now.members), now.lag)
    add, labels = families.add, {"group": now.group_id}
    add("kafkascope_group_epoch", "Epoch of the group.", now.group_epoch, {**labels, "type": "streams"})
    add("kafkascope_streams_topology_epoch", "Epoch of the topology.", now.topology_epoch, labels)
    for role in ROLES:
        held = sum(len(getattr(member.assignment, role)) for member in now.members)
        target = sum(len(getattr(member.target, role)) for member in now.members)
        add("kafkascope_streams_tasks", "Tasks that members hold.", held, {**labels, "role": role})
        add("kafkascope_streams_target_tasks", "Target number of tasks of members.", target, {**labels, "role": role})
    for status in now.statuses:
        add("kafkascope_streams_status", "1 for a status of the group.", 1, {**labels, "status": status.name})
    for partition in now.inputs:
        place = {**labels, "topic": partition.topic, "partition": partition.partition}
        add("kafkascope_streams_input_lag_records", "Lag of an input partition.", partition.lag, place, "records")
