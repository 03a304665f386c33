"""Checks a classic or consumer group: the limits, and records that wait for a group without members. The rules of the
findings are about share and streams groups."""

from collections.abc import Sequence

from kafkascope.client.check.openmetrics import MetricFamilies
from kafkascope.client.check.verdicts import (
    CheckLimits,
    CheckProblem,
    CheckResult,
    Snapshot,
    check_result,
    lag_problems,
    member_problems,
)
from kafkascope.client.describe.group import ConsumerGroupView
from kafkascope.formatting import count, first_names

_NO_MEMBERS, _PAST_END = "group_no_members", "group_past_end"
_ADVICE = "Start the application, or delete the group if it isn't needed."
_PAST_END_ADVICE = "Check if records were lost or the topic was recreated; then reset the group's offsets."
_MAX_NAMED = 3


def check_group(snapshots: Sequence[Snapshot[ConsumerGroupView]], limits: CheckLimits) -> CheckResult:
    now = snapshots[-1].view
    name = now.group_id or '""'
    subject = f"Group {name}"
    problems = lag_problems(now.lag, None, f"The lag of group {name}", CheckLimits(max_lag=limits.max_lag))
    problems += member_problems(len(now.members), subject, limits)
    if now.past_end:
        summary = f"{subject} has committed past the end of {first_names(now.past_end, _MAX_NAMED)}."
        problems.append(CheckProblem(_PAST_END, "warning", summary, _PAST_END_ADVICE))
    if now.lag is not None and now.lag > 0 and not any(snapshot.view.members for snapshot in snapshots):
        summary = f"{subject} has no members and {count(now.lag, 'record')} waiting."
        problems.append(CheckProblem(_NO_MEMBERS, "warning", summary, _ADVICE))
    lag = "lag unknown" if now.lag is None else f"lag {now.lag:,}"
    figures: dict[str, int | str | None] = {
        "state": now.state,
        "type": now.type,
        "members": len(now.members),
        "partitions": len(now.partitions),
        "lag": now.lag,
    }
    summary_text = f"{now.state}, {count(len(now.members), 'member')}, {lag}"
    return check_result("group", f"group {name}", summary_text, problems, limits, figures, now.gaps)


def consumer_group_metrics(now: ConsumerGroupView, families: MetricFamilies) -> None:
    group_metrics(families, now.group_id, now.type, now.state, len(now.members), now.lag)
    for partition in now.partitions:
        labels = {"group": now.group_id, "topic": partition.topic, "partition": partition.partition}
        lag = "Lag of a partition: its end less the committed offset."
        families.add("kafkascope_group_partition_lag_records", lag, partition.lag, labels, "records")


def group_metrics(families: MetricFamilies, group: str, kind: str, state: str, members: int, lag: int | None) -> None:
    """Metrics that every type of group has."""
    labels = {"group": group, "type": kind}
    families.add("kafkascope_group_state", "1 for the state of the group.", 1, {**labels, "state": state})
    families.add("kafkascope_group_members", "Members of the group.", members, labels)
    families.add("kafkascope_group_lag_records", "Lag over all partitions.", lag, labels, "records")
