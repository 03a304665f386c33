"""A cluster and what to check in, verdicts and metrics out: looks once, or again and again for a while, at the quorum
and at every group that is meant."""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafkascope.client.check.groups import check_group, consumer_group_metrics
from kafkascope.client.check.openmetrics import Families, render
from kafkascope.client.check.quorum import check_quorum, quorum_metrics
from kafkascope.client.check.share import check_share_group, share_group_metrics
from kafkascope.client.check.streams import check_streams_group, streams_group_metrics
from kafkascope.client.check.verdicts import LIST, Checked, Look, Problem, Wanted, verdict
from kafkascope.client.describe.calls import NO_TIME, map_limited
from kafkascope.client.describe.gaps import FAILURES, GROUP_ID_NOT_FOUND, UNASKED, Failure, Gap, merge_gaps
from kafkascope.client.describe.group import describe_group
from kafkascope.client.describe.groups import describe_groups
from kafkascope.client.describe.quorum import describe_quorum
from kafkascope.client.describe.share_group import describe_share_group
from kafkascope.client.describe.streams_group import describe_streams_group
from kafkascope.errors import RefusedError

if TYPE_CHECKING:
    from kafkascope.client.cluster import Cluster

QUORUM, SHARE, STREAMS, GROUP = "quorum", "share-group", "streams-group", "group"
# How each is asked for, judged and measured, and which types of ListGroups it is about.
DESCRIBE: dict[str, Callable[["Cluster", str], Any]] = {
    QUORUM: lambda cluster, _: describe_quorum(cluster),
    SHARE: describe_share_group,
    STREAMS: describe_streams_group,
    GROUP: describe_group,
}
JUDGE: dict[str, Callable[[Sequence[Look[Any]], Wanted], Checked]] = {
    QUORUM: check_quorum,
    SHARE: check_share_group,
    STREAMS: check_streams_group,
    GROUP: check_group,
}
MEASURE: dict[str, Callable[[Any, Families], None]] = {
    QUORUM: quorum_metrics,
    SHARE: share_group_metrics,
    STREAMS: streams_group_metrics,
    GROUP: consumer_group_metrics,
}
TYPES = {"share": SHARE, "streams": STREAMS, "consumer": GROUP, "classic": GROUP}
# Apart by this at the least: a check is no load.
LEAST_PAUSE = 0.5
MOST_LOOKS = 20

NOT_LISTED = "not_listed"
_ADVICE = "Grant Describe on Cluster, or name the groups that are meant."

Subject = tuple[str, str]  # what is checked, and the group


@dataclass(slots=True)
class Report:
    """`checked` in the order in which they were asked for, groups by name. `gaps` are of the list of groups; where
    there are any, that list is not healthy either."""

    checked: list[Checked] = field(default_factory=list)
    looks: dict[Subject, list[Look[Any]]] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    seconds: float = 0.0

    @property
    def healthy(self) -> bool:
        return all(one.healthy for one in self.checked)


async def look(
    cluster: "Cluster", kinds: Collection[str], groups: Sequence[str], wanted: Wanted, seconds: float = 0.0
) -> Report:
    """`groups` are names; without any, all groups of those kinds. `seconds` is for how long: 0 looks once.
    RefusedError where a group that was named is not there, or may not be seen; ReachError where nobody answers."""
    began = time.monotonic()
    report = Report()
    refusals: dict[Subject, RefusedError | Failure] = {}
    while True:
        silent: list[Failure] = []
        with cluster.look():
            subjects = await _subjects(cluster, kinds, groups, report)
            views = await map_limited(subjects, lambda one: _see(cluster, one))
        late = sum(found is None for found in views)
        if late:
            late_gap = Gap(f"{late:,} of {len(subjects):,}", "ListGroups", UNASKED, detail=NO_TIME)
            report.gaps = merge_gaps([*report.gaps, late_gap])
        for subject, found in zip(subjects, views, strict=True):
            if found is None:
                continue
            if isinstance(found, FAILURES):
                refusals[subject] = found
                silent.append(found)
            elif not isinstance(found, RefusedError):
                refusals.pop(subject, None)
                report.looks.setdefault(subject, []).append(Look(time.time_ns() // 1000, found))
            elif groups or len(kinds) == 1 == len(subjects):
                raise found
            elif found.code != GROUP_ID_NOT_FOUND:
                # Else it ended between the two questions.
                refusals[subject] = found
        if silent and len(silent) == len(subjects):
            raise silent[0]
        left = seconds - (time.monotonic() - began)
        if left <= 0:
            break
        await asyncio.sleep(min(left, max(LEAST_PAUSE, seconds / MOST_LOOKS)))
    seen = {subject: looks for subject, looks in report.looks.items() if subject not in refusals}
    report.checked = [JUDGE[kind](looks, wanted) for (kind, _), looks in seen.items()]
    report.checked += [_refused(subject, error, wanted) for subject, error in refusals.items()]
    if report.gaps:
        report.checked.append(_unlisted(kinds, report.gaps, wanted))
    report.seconds = time.monotonic() - began
    return report


async def _subjects(cluster: "Cluster", kinds: Collection[str], groups: Sequence[str], report: Report) -> list[Subject]:
    subjects: list[Subject] = [(QUORUM, "")] if QUORUM in kinds else []
    wanted = [kind for kind in kinds if kind != QUORUM]
    if groups:
        return subjects + [(kind, group) for kind in wanted for group in dict.fromkeys(groups)]
    if wanted:
        types = [name for name, kind in TYPES.items() if kind in wanted]
        found = await describe_groups(cluster, types, members=False)
        report.gaps = merge_gaps([*report.gaps, *found.lacks])
        subjects += sorted((TYPES[one.type], one.group_id) for one in found.groups if one.type in TYPES)
    return subjects


async def _see(cluster: "Cluster", subject: Subject) -> Any:
    """None where there was no time to ask."""
    kind, group = subject
    if cluster.late():
        return None
    try:
        return await DESCRIBE[kind](cluster, group)
    except (RefusedError, *FAILURES) as error:
        return error


def _unlisted(kinds: Collection[str], gaps: Sequence[Gap], wanted: Wanted) -> Checked:
    """Groups that are not in the list may be as sick as can be."""
    said = _sentence(f"Groups may be missing there: {'; '.join(map(_missing, gaps))}")
    some = [kind for kind in kinds if kind != QUORUM]
    kind = some[0] if len(some) == 1 else GROUP
    return verdict(kind, LIST, "", [Problem(NOT_LISTED, "warning", said, _ADVICE)], wanted, {}, ())


def _sentence(said: str) -> str:
    return said if said.endswith("?") else f"{said}."


def _missing(lack: Gap) -> str:
    return f"to see all needs {lack.needs}" if lack.needs else f"{lack.what}: {lack.detail or lack.error}"


def _refused(subject: Subject, error: RefusedError | Failure, wanted: Wanted) -> Checked:
    kind, group = subject
    group = group or ("" if kind == QUORUM else '""')
    problem = Problem("not_described", "warning", _sentence(f"It could not be described: {error}"))
    return verdict(kind, f"{kind.replace('-', ' ')} {group}".strip(), "", [problem], wanted, {}, ())


def metrics(report: Report) -> str:
    """OpenMetrics of the last look at each, and what the check says of it."""
    families = Families()
    families.add("kafkascope_up", "1 where the cluster was reached.", 1)
    families.add("kafkascope_look_duration_seconds", "Time that the look took.", report.seconds, unit="seconds")
    for (kind, _), looks in report.looks.items():
        MEASURE[kind](looks[-1].view, families)
    for one in report.checked:
        labels = {"check": one.check, "subject": one.subject}
        families.add("kafkascope_check_healthy", "1 where the check passes, 0 where not.", int(one.healthy), labels)
        for problem in (*one.problems, *one.notes):
            told = {**labels, "rule": problem.rule, "severity": problem.severity}
            families.add("kafkascope_check_problem", "1 for a rule or limit that was broken.", 1, told)
    lacking = {(gap.api, gap.error) for gap in _gaps(report)}
    for api, error in sorted(lacking):
        families.add("kafkascope_check_gap", "1 for what could not be seen.", 1, {"api": api, "error": error})
    return render(families.families())


def _gaps(report: Report) -> tuple[Gap, ...]:
    return merge_gaps([*report.gaps, *(gap for one in report.checked for gap in one.gaps)])


def not_reached() -> str:
    families = Families()
    families.add("kafkascope_up", "1 where the cluster was reached.", 0)
    return render(families.families())
