"""Looks at a consumer group in, its verdict out. The rules of the findings are about share and streams groups: of these
the limits count, and records that wait for a group that nobody is in."""

from collections.abc import Sequence

from kafkascope.client.check import Checked, Look, Problem, Wanted, lag_problems, member_problems, verdict
from kafkascope.client.check_openmetrics import Families
from kafkascope.client.describe.group import ConsumerGroup
from kafkascope.health.findings_words import count

NO_MEMBERS = "group_no_members"
_ADVICE = "Start the application, or delete the group if it is not wanted."


def check_group(looks: Sequence[Look[ConsumerGroup]], wanted: Wanted) -> Checked:
    now = looks[-1].view
    whose = f"Group {now.group_id}"
    problems = lag_problems(now.lag, None, f"The lag of group {now.group_id}", Wanted(max_lag=wanted.max_lag))
    problems += member_problems(len(now.members), whose, wanted)
    # Below 0 where records that were committed are gone.
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
    return verdict("group", f"group {now.group_id}", says, problems, wanted, figures, now.gaps)


def consumer_group_metrics(now: ConsumerGroup, families: Families) -> None:
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
