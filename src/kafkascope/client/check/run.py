"""Runs checks on a live cluster, once or repeatedly for a while, and renders the results as metrics."""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafkascope.client.check.groups import check_group, consumer_group_metrics
from kafkascope.client.check.openmetrics import MetricFamilies, render
from kafkascope.client.check.quorum import check_quorum, quorum_metrics
from kafkascope.client.check.share import check_share_group, share_group_metrics
from kafkascope.client.check.streams import check_streams_group, streams_group_metrics
from kafkascope.client.check.verdicts import GROUP_LIST, CheckLimits, CheckProblem, CheckResult, Snapshot, check_result
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
# How each kind is described, judged and measured, and its types in ListGroups.
_DESCRIBE: dict[str, Callable[["Cluster", str], Any]] = {
    QUORUM: lambda cluster, _: describe_quorum(cluster),
    SHARE: describe_share_group,
    STREAMS: describe_streams_group,
    GROUP: describe_group,
}
_CHECK: dict[str, Callable[[Sequence[Snapshot[Any]], CheckLimits], CheckResult]] = {
    QUORUM: check_quorum,
    SHARE: check_share_group,
    STREAMS: check_streams_group,
    GROUP: check_group,
}
_ADD_METRICS: dict[str, Callable[[Any, MetricFamilies], None]] = {
    QUORUM: quorum_metrics,
    SHARE: share_group_metrics,
    STREAMS: streams_group_metrics,
    GROUP: consumer_group_metrics,
}
_CHECK_OF_TYPE = {"share": SHARE, "streams": STREAMS, "consumer": GROUP, "classic": GROUP}
# The least time between two looks, so that a check causes little load.
_MIN_PAUSE = 0.5
_MAX_SNAPSHOTS = 20

_NOT_LISTED = "not_listed"
_ADVICE = "Grant Describe on Cluster, or name the groups to check."

_Subject = tuple[str, str]  # the kind, and the group


@dataclass(slots=True)
class CheckReport:
    """`results` are in the order of the kinds, groups by name. `gaps` are of the list of groups; if there are any, that
    list isn't healthy either."""

    results: list[CheckResult] = field(default_factory=list)
    snapshots: dict[_Subject, list[Snapshot[Any]]] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    seconds: float = 0.0

    @property
    def healthy(self) -> bool:
        return all(result.healthy for result in self.results)


async def check_cluster(
    cluster: "Cluster", kinds: Collection[str], groups: Sequence[str], limits: CheckLimits, seconds: float = 0.0
) -> CheckReport:
    """`groups` are names; without any, all groups of those kinds. `seconds` is the duration: 0 looks once. RefusedError
    if a named group doesn't exist or may not be seen; ReachError if no node responds."""
    began = time.monotonic()
    report = CheckReport()
    refusals: dict[_Subject, RefusedError | Failure] = {}
    while True:
        silent: list[Failure] = []
        with cluster.look():
            subjects = await _subjects(cluster, kinds, groups, report)
            views = await map_limited(subjects, lambda subject: _describe(cluster, subject))
        late = sum(view is None for view in views)
        if late:
            late_gap = Gap(f"{late:,} of {len(subjects):,}", "ListGroups", UNASKED, detail=NO_TIME)
            report.gaps = merge_gaps([*report.gaps, late_gap])
        for subject, view in zip(subjects, views, strict=True):
            if view is None:
                continue
            if isinstance(view, FAILURES):
                refusals[subject] = view
                silent.append(view)
            elif not isinstance(view, RefusedError):
                refusals.pop(subject, None)
                report.snapshots.setdefault(subject, []).append(Snapshot(time.time_ns() // 1000, view))
            elif groups or len(kinds) == 1 == len(subjects):
                raise view
            elif view.code != GROUP_ID_NOT_FOUND:
                # Otherwise the group ended between the two calls.
                refusals[subject] = view
        if silent and len(silent) == len(subjects):
            raise silent[0]
        remaining = seconds - (time.monotonic() - began)
        if remaining <= 0:
            break
        await asyncio.sleep(min(remaining, max(_MIN_PAUSE, seconds / _MAX_SNAPSHOTS)))
    seen = {subject: snapshots for subject, snapshots in report.snapshots.items() if subject not in refusals}
    report.results = [_CHECK[kind](snapshots, limits) for (kind, _), snapshots in seen.items()]
    report.results += [_refused_result(subject, error, limits) for subject, error in refusals.items()]
    if report.gaps:
        report.results.append(_list_result(kinds, report.gaps, limits))
    report.seconds = time.monotonic() - began
    return report


async def _subjects(
    cluster: "Cluster", kinds: Collection[str], groups: Sequence[str], report: CheckReport
) -> list[_Subject]:
    subjects: list[_Subject] = [(QUORUM, "")] if QUORUM in kinds else []
    group_kinds = [kind for kind in kinds if kind != QUORUM]
    if groups:
        return subjects + [(kind, group) for kind in group_kinds for group in dict.fromkeys(groups)]
    if group_kinds:
        types = [name for name, kind in _CHECK_OF_TYPE.items() if kind in group_kinds]
        listing = await describe_groups(cluster, types, members=False)
        report.gaps = merge_gaps([*report.gaps, *listing.lacks])
        subjects += sorted(
            (_CHECK_OF_TYPE[group.type], group.group_id) for group in listing.groups if group.type in _CHECK_OF_TYPE
        )
    return subjects


async def _describe(cluster: "Cluster", subject: _Subject) -> Any:
    """None if there was no time to ask."""
    kind, group = subject
    if cluster.late():
        return None
    try:
        return await _DESCRIBE[kind](cluster, group)
    except (RefusedError, *FAILURES) as error:
        return error


def _list_result(kinds: Collection[str], gaps: Sequence[Gap], limits: CheckLimits) -> CheckResult:
    """Groups missing from the list may be unhealthy."""
    summary = _sentence(f"Groups may be missing from it: {'; '.join(map(_missing_text, gaps))}")
    group_kinds = [kind for kind in kinds if kind != QUORUM]
    kind = group_kinds[0] if len(group_kinds) == 1 else GROUP
    return check_result(kind, GROUP_LIST, "", [CheckProblem(_NOT_LISTED, "warning", summary, _ADVICE)], limits, {}, ())


def _sentence(text: str) -> str:
    return text if text.endswith("?") else f"{text}."


def _missing_text(gap: Gap) -> str:
    return f"seeing all needs the ACL {gap.needs}" if gap.needs else f"{gap.what}: {gap.detail or gap.error}"


def _refused_result(subject: _Subject, error: RefusedError | Failure, limits: CheckLimits) -> CheckResult:
    kind, group = subject
    group = group or ("" if kind == QUORUM else '""')
    problem = CheckProblem("not_described", "warning", _sentence(f"It could not be described: {error}"))
    return check_result(kind, f"{kind.replace('-', ' ')} {group}".strip(), "", [problem], limits, {}, ())


def render_metrics(report: CheckReport) -> str:
    """OpenMetrics of the last look at each subject, and its verdict."""
    families = MetricFamilies()
    families.add("kafkascope_up", "1 where the cluster was reached.", 1)
    families.add("kafkascope_look_duration_seconds", "Duration of the look.", report.seconds, unit="seconds")
    for (kind, _), snapshots in report.snapshots.items():
        _ADD_METRICS[kind](snapshots[-1].view, families)
    for result in report.results:
        labels = {"check": result.check, "subject": result.subject}
        families.add("kafkascope_check_healthy", "1 if the check passes, 0 if not.", int(result.healthy), labels)
        for problem in (*result.problems, *result.notes):
            problem_labels = {**labels, "rule": problem.rule, "severity": problem.severity}
            families.add("kafkascope_check_problem", "1 for a rule or limit that was broken.", 1, problem_labels)
    lacking = {(gap.api, gap.error) for gap in _gaps(report)}
    for api, error in sorted(lacking):
        families.add("kafkascope_check_gap", "1 for a subject that could not be seen.", 1, {"api": api, "error": error})
    return render(families.families())


def _gaps(report: CheckReport) -> tuple[Gap, ...]:
    return merge_gaps([*report.gaps, *(gap for result in report.results for gap in result.gaps)])


def render_unreachable() -> str:
    families = MetricFamilies()
    families.add("kafkascope_up", "1 where the cluster was reached.", 0)
    return render(families.families())
