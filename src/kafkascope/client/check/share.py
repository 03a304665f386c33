"""Checks a share group for waiting records without members, stalled partitions, and lag."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import pairwise, takewhile

from kafkascope.client.check.groups import group_metrics
from kafkascope.client.check.openmetrics import MetricFamilies
from kafkascope.client.check.verdicts import (
    CheckLimits,
    CheckProblem,
    CheckResult,
    Snapshot,
    check_result,
    lag_problems,
    member_problems,
    rule_problems,
)
from kafkascope.client.describe.share_group import ShareGroupView, mark_stalled
from kafkascope.formatting import count, span
from kafkascope.health.findings.rules.table import RULES as ALL_RULES
from kafkascope.health.share.group_health import ShareGroupEvent, share_group_health

_NO_MEMBERS, _STANDING_STILL = "share_no_members", "share_standing_still"
# The first needs one look, the others need whole minutes.
RULES = (_NO_MEMBERS, _STANDING_STILL, "share_lag_growing")


def check_share_group(snapshots: Sequence[Snapshot[ShareGroupView]], limits: CheckLimits) -> CheckResult:
    now = snapshots[-1].view
    events = [event for snapshot in snapshots for event in _events(snapshot)]
    rows = [asdict(row) for row in share_group_health((), events)]
    problems = [
        _with_empty_time(problem, snapshots) for problem in rule_problems({"share_group_health": rows}, RULES, limits)
    ]
    if not any(problem.rule == _STANDING_STILL for problem in problems):
        problems += _stalled_problems(snapshots, limits)
    subject = f"The lag of share group {now.group_id}"
    problems += lag_problems(now.lag, None, subject, _without_time(limits))
    problems += member_problems(len(now.members), f"Share group {now.group_id}", limits)
    lag = "lag unknown" if now.lag is None else f"lag {now.lag:,}"
    summary = f"{now.state}, {count(len(now.members), 'member')}, {lag}"
    figures: dict[str, int | str | None] = {
        "state": now.state,
        "members": len(now.members),
        "partitions": len(now.partitions),
        "lag": now.lag,
        "groupEpoch": now.group_epoch,
        "assignmentEpoch": now.assignment_epoch,
    }
    return check_result("share-group", f"share group {now.group_id}", summary, problems, limits, figures, now.gaps)


def _with_empty_time(problem: CheckProblem, snapshots: Sequence[Snapshot[ShareGroupView]]) -> CheckProblem:
    """How long the group had no members: the rule counts observed minutes, and one look isn't a minute."""
    now = snapshots[-1]
    if problem.rule != _NO_MEMBERS or now.view.members or now.view.lag is None:
        return problem
    empty = [*takewhile(lambda snapshot: not snapshot.view.members, reversed(snapshots))]
    lasting = (now.at - empty[-1].at) / 1000
    since = f" for {span(lasting)}" if lasting else ""
    summary = f"Share group {now.view.group_id} has no members{since} and {count(now.view.lag, 'record')} waiting."
    return replace(problem, summary=summary)


def _without_time(limits: CheckLimits) -> CheckLimits:
    """The lag of a share group is only known in records."""
    return CheckLimits(max_lag=limits.max_lag)


def _stalled_problems(snapshots: Sequence[Snapshot[ShareGroupView]], limits: CheckLimits) -> Iterator[CheckProblem]:
    """If the check is shorter than the rule's minutes: partitions that stalled for all of it."""
    threshold = limits.thresholds.get(f"{_STANDING_STILL}.minutes")
    if len(snapshots) < 2 or threshold is not None:
        return
    stalled_throughout: set[str] | None = None
    for before, after in pairwise(snapshots):
        stalled = set(mark_stalled(before.view, after.view).standing_still)
        stalled_throughout = stalled if stalled_throughout is None else stalled_throughout & stalled
    first, last = snapshots[0], snapshots[-1]
    grown = (last.view.lag or 0) - (first.view.lag or 0)
    lag = f" while the group's lag grew by {count(grown, 'record')}" if grown > 0 else ""
    lasting = span((last.at - first.at) / 1000)
    for place in sorted(stalled_throughout or ()):
        summary = f"{place} of share group {last.view.group_id} finished no record for {lasting}{lag}."
        yield CheckProblem(
            _STANDING_STILL, "critical" if grown > 0 else "warning", summary, ALL_RULES[_STANDING_STILL].advice
        )


def _events(snapshot: Snapshot[ShareGroupView]) -> Iterator[ShareGroupEvent]:
    view = snapshot.view
    assigned = sum(len(assignment.partitions) for member in view.members for assignment in member.assignment)
    yield ShareGroupEvent(
        "described",
        snapshot.at,
        group_id=view.group_id,
        group_epoch=view.group_epoch,
        assignment_epoch=view.assignment_epoch,
        state=view.state,
        members=len(view.members),
        assigned=assigned,
        error_code=0,
    )
    for partition in view.partitions:
        yield ShareGroupEvent(
            "offsets",
            snapshot.at,
            group_id=view.group_id,
            topic=partition.topic,
            topic_id=partition.topic,
            partition=partition.partition,
            start_offset=partition.start_offset,
            lag=partition.lag,
            error_code=0,
        )


def share_group_metrics(now: ShareGroupView, families: MetricFamilies) -> None:
    group_metrics(families, now.group_id, "share", now.state, len(now.members), now.lag)
    add = families.add
    add("kafkascope_group_epoch", "Epoch of the group.", now.group_epoch, {"group": now.group_id, "type": "share"})
    for partition in now.partitions:
        labels = {"group": now.group_id, "topic": partition.topic, "partition": partition.partition}
        start, end = "First offset that isn't finished.", "Log end offset of the partition."
        add("kafkascope_share_partition_start_offset", start, partition.start_offset, labels)
        add("kafkascope_share_partition_end_offset", end, partition.end_offset, labels)
        lag = "Records that wait or are in flight."
        add("kafkascope_share_partition_lag_records", lag, partition.lag, labels, "records")
