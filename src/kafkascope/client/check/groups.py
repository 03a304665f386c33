"""Looks at a consumer group in, its verdict out. The rules of the findings are about share and streams groups: of these
the limits count, and records that wait for a group that nobody is in."""

from collections.abc import Sequence

from kafkascope.client.check.openmetrics import Families
from kafkascope.client.check.verdicts import Checked, Look, Problem, Wanted, lag_problems, member_problems, verdict
from kafkascope.client.describe.group import ConsumerGroupView
from kafkascope.health.findings.words import count

NO_MEMBERS, PAST_END = "group_no_members", "group_past_end"
_ADVICE = "Start the application, or delete the group if it is not wanted."
_PAST_END = "Look whether records were lost or the topic was made anew; then reset the group's offsets."
_MOST_NAMED = 3


def check_group(looks: Sequence[Look[ConsumerGroupView]], wanted: Wanted) -> Checked:
    now = looks[-1].view
    name = now.group_id or '""'
    whose = f"Group {name}"
    problems = lag_problems(now.lag, None, f"The lag of group {name}", Wanted(max_lag=wanted.max_lag))
    problems += member_problems(len(now.members), whose, wanted)
    if now.past_end:
        more = len(now.past_end) - _MOST_NAMED
        some = ", ".join(now.past_end[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
        said = f"{whose} has committed past the end of {some}."
        problems.append(Problem(PAST_END, "warning", said, _PAST_END))
    if now.lag is not None and now.lag > 0 and not any(look.view.members for look in looks):
        said = f"{whose} has no members and {count(now.lag, 'record')} waiting."
        problems.append(Problem(NO_MEMBERS, "warning", said, _ADVICE))
    lag = "lag unknown" if now.lag is None else f"lag {now.lag:,}"
    figures: dict[str, int | str | None] = {
        "state": now.state,
        "type": now.type,
        "members": len(now.members),
        "partitions": len(now.partitions),
        "lag": now.lag,
    }
    says = f"{now.state}, {count(len(now.members), 'member')}, {lag}"
    return verdict("group", f"group {name}", says, problems, wanted, figures, now.gaps)


def consumer_group_metrics(now: ConsumerGroupView, families: Families) -> None:
    group_metrics(families, now.group_id, now.type, now.state, len(now.members), now.lag)
    for one in now.partitions:
        labels = {"group": now.group_id, "topic": one.topic, "partition": one.partition}
        lag = "Lag of a partition: its end less the committed offset."
        families.add("kafkascope_group_partition_lag_records", lag, one.lag, labels, "records")


def group_metrics(families: Families, group: str, kind: str, state: str, members: int, lag: int | None) -> None:
    """What every type of group has."""
    labels = {"group": group, "type": kind}
    families.add("kafkascope_group_state", "1 for the state that the group is in.", 1, {**labels, "state": state})
    families.add("kafkascope_group_members", "Members of the group.", members, labels)
    families.add("kafkascope_group_lag_records", "Lag over all partitions.", lag, labels, "records")
