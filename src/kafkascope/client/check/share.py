"""Looks at a share group in, its verdict out: nobody there while records wait, partitions that stand still, lag."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import pairwise, takewhile

from kafkascope.client.check.groups import group_metrics
from kafkascope.client.check.openmetrics import Families
from kafkascope.client.check.verdicts import (
    Checked,
    Look,
    Problem,
    Wanted,
    judged,
    lag_problems,
    member_problems,
    verdict,
)
from kafkascope.client.describe.share_group import ShareGroupView, mark_stalled
from kafkascope.health.findings.rules import RULES as ALL_RULES
from kafkascope.health.findings.words import count, span
from kafkascope.health.share.group_health import ShareGroupEvent, share_group_health

NO_MEMBERS, STANDING_STILL = "share_no_members", "share_standing_still"
# The first needs one look, the others whole minutes of them.
RULES = (NO_MEMBERS, STANDING_STILL, "share_lag_growing")


def check_share_group(looks: Sequence[Look[ShareGroupView]], wanted: Wanted) -> Checked:
    now = looks[-1].view
    events = [event for look in looks for event in _events(look)]
    rows = [asdict(row) for row in share_group_health((), events)]
    problems = [_by_looks(one, looks) for one in judged({"share_group_health": rows}, RULES, wanted)]
    if not any(one.rule == STANDING_STILL for one in problems):
        problems += _still(looks, wanted)
    whose = f"The lag of share group {now.group_id}"
    problems += lag_problems(now.lag, None, whose, _without_time(wanted))
    problems += member_problems(len(now.members), f"Share group {now.group_id}", wanted)
    lag = "lag unknown" if now.lag is None else f"lag {now.lag:,}"
    says = f"{now.state}, {count(len(now.members), 'member')}, {lag}"
    figures: dict[str, int | str | None] = {
        "state": now.state,
        "members": len(now.members),
        "partitions": len(now.partitions),
        "lag": now.lag,
        "groupEpoch": now.group_epoch,
        "assignmentEpoch": now.assignment_epoch,
    }
    return verdict("share-group", f"share group {now.group_id}", says, problems, wanted, figures, now.gaps)


def _by_looks(problem: Problem, looks: Sequence[Look[ShareGroupView]]) -> Problem:
    """For how long nobody was there: the rule counts minutes that it saw something of, and one look is no minute."""
    now = looks[-1]
    if problem.rule != NO_MEMBERS or now.view.members or now.view.lag is None:
        return problem
    empty = [*takewhile(lambda look: not look.view.members, reversed(looks))]
    lasting = (now.at - empty[-1].at) / 1000
    since = f" for {span(lasting)}" if lasting else ""
    said = f"Share group {now.view.group_id} has no members{since} and {count(now.view.lag, 'record')} waiting."
    return replace(problem, summary=said)


def _without_time(wanted: Wanted) -> Wanted:
    """The lag of a share group is told in records alone."""
    return Wanted(max_lag=wanted.max_lag)


def _still(looks: Sequence[Look[ShareGroupView]], wanted: Wanted) -> Iterator[Problem]:
    """In less than the rule's minutes: what stood still all the time that was looked."""
    threshold = wanted.thresholds.get(f"{STANDING_STILL}.minutes")
    if len(looks) < 2 or threshold is not None:
        return
    still: set[str] | None = None
    for before, after in pairwise(looks):
        found = set(mark_stalled(before.view, after.view).standing_still)
        still = found if still is None else still & found
    first, last = looks[0], looks[-1]
    grown = (last.view.lag or 0) - (first.view.lag or 0)
    lag = f" while the group's lag grew by {count(grown, 'record')}" if grown > 0 else ""
    lasting = span((last.at - first.at) / 1000)
    for place in sorted(still or ()):
        said = f"{place} of share group {last.view.group_id} finished no record for {lasting}{lag}."
        yield Problem(STANDING_STILL, "critical" if grown > 0 else "warning", said, ALL_RULES[STANDING_STILL].advice)


def _events(look: Look[ShareGroupView]) -> Iterator[ShareGroupEvent]:
    view = look.view
    assigned = sum(len(one.partitions) for member in view.members for one in member.assignment)
    yield ShareGroupEvent(
        "described",
        look.at,
        group_id=view.group_id,
        group_epoch=view.group_epoch,
        assignment_epoch=view.assignment_epoch,
        state=view.state,
        members=len(view.members),
        assigned=assigned,
        error_code=0,
    )
    for one in view.partitions:
        yield ShareGroupEvent(
            "offsets",
            look.at,
            group_id=view.group_id,
            topic=one.topic,
            topic_id=one.topic,
            partition=one.partition,
            start_offset=one.start_offset,
            lag=one.lag,
            error_code=0,
        )


def share_group_metrics(now: ShareGroupView, families: Families) -> None:
    group_metrics(families, now.group_id, "share", now.state, len(now.members), now.lag)
    add = families.add
    add("kafkascope_group_epoch", "Epoch of the group.", now.group_epoch, {"group": now.group_id, "type": "share"})
    for one in now.partitions:
        labels = {"group": now.group_id, "topic": one.topic, "partition": one.partition}
        start, end = "First offset that is not done with.", "Log end offset of the partition."
        add("kafkascope_share_partition_start_offset", start, one.start_offset, labels)
        add("kafkascope_share_partition_end_offset", end, one.end_offset, labels)
        lag = "Records that wait or are in flight."
        add("kafkascope_share_partition_lag_records", lag, one.lag, labels, "records")
