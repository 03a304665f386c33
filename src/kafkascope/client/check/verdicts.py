"""Applies the rules of the findings and the limits of the command line to what a check observed. An unknown value never
passes a limit on it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from kafkascope.client.describe.gaps import Gap
from kafkascope.formatting import count, span
from kafkascope.health.findings.diagnosis import SEVERITIES, Finding, findings_of
from kafkascope.health.findings.rules.rule import Severity
from kafkascope.health.findings.rules.table import RULES
from kafkascope.health.incidents.diagnosis import incidents_of
from kafkascope.health.incidents.incident import Incident, key_of

_View = TypeVar("_View")
_Row = Mapping[str, Any]

# Rules about a state that lasts for the whole check.
_LASTING = frozenset({"quorum_replica_never_fetched", "streams_task_unheld", "streams_missing_internal_topics"})
# The subject of a check whose list of groups has gaps.
GROUP_LIST = "list of groups"
_MAX_LAG, _MAX_LAG_MS, _MIN_MEMBERS = "max_lag", "max_lag_ms", "min_members"


@dataclass(frozen=True, slots=True)
class Snapshot(Generic[_View]):
    """`at` is microseconds since 1970."""

    at: int
    view: _View


@dataclass(frozen=True, slots=True)
class CheckLimits:
    """Limits of the user, besides the rules. `lasting_ms` is the duration of the check, 0 for one look: a rule that
    needs more time fires on states that lasted for all of it. `fail_on` is the lowest severity that isn't healthy."""

    max_lag: int | None = None
    max_lag_ms: int | None = None
    min_members: int | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    lasting_ms: int = 0
    fail_on: Severity = "warning"


@dataclass(frozen=True, slots=True)
class CheckProblem:
    """`rule` is a finding's, or the exceeded limit: max_lag, max_lag_ms, min_members. A finding has the `cause` of its
    incident, its `role` in it, and the incident's severity."""

    rule: str
    severity: Severity
    summary: str
    advice: str = ""
    cause: str = ""
    role: str = ""
    incident_severity: Severity | None = None

    @property
    def order(self) -> int:
        return SEVERITIES.index(self.incident_severity or self.severity)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The verdict on one subject. `summary` describes it, `notes` are problems below `fail_on`."""

    check: str
    subject: str
    healthy: bool
    summary: str
    problems: tuple[CheckProblem, ...]
    notes: tuple[CheckProblem, ...]
    figures: Mapping[str, int | str | None]
    gaps: tuple[Gap, ...]

    @property
    def line(self) -> str:
        """`share group orders: 2 members, Stable, lag 12`"""
        text = " ".join(problem.summary for problem in self.problems) if self.problems else self.summary
        return f"{self.subject}: {text}"


def check_result(
    check: str,
    subject: str,
    summary: str,
    problems: Iterable[CheckProblem],
    limits: CheckLimits,
    figures: Mapping[str, int | str | None],
    gaps: Iterable[Gap],
) -> CheckResult:
    # Problems of an incident stay together, its cause first.
    ordered = sorted(problems, key=lambda problem: problem.order)
    severe = SEVERITIES[: SEVERITIES.index(limits.fail_on) + 1]
    failing = tuple(problem for problem in ordered if problem.severity in severe)
    notes = tuple(problem for problem in ordered if problem.severity not in severe)
    return CheckResult(check, subject, not failing, summary, failing, notes, figures, tuple(gaps))


def rule_problems(
    marts: Mapping[str, Iterable[_Row]],
    rules: Collection[str],
    limits: CheckLimits,
    own: Mapping[str, float] | None = None,
) -> list[CheckProblem]:
    """Findings of these rules, by incident, worst first. `own` are thresholds that the cluster itself sets; the user's
    thresholds override them."""
    thresholds = {**(own or {}), **_shortened_thresholds(rules, limits.lasting_ms), **limits.thresholds}
    findings = {key_of(finding): finding for finding in findings_of(marts, thresholds) if finding.rule in rules}
    return [
        _problem(findings[part.key], incident, part.role)
        for incident in incidents_of(findings.values(), {})
        for part in incident.consequences
    ]


def _problem(finding: Finding, incident: Incident, role: str) -> CheckProblem:
    return CheckProblem(
        finding.rule, finding.severity, finding.summary, finding.advice, incident.cause, role, incident.severity
    )


def _shortened_thresholds(rules: Collection[str], lasting_ms: int) -> dict[str, float]:
    """In less time no state can reach its threshold, so lasting for the whole check is enough."""
    if not lasting_ms:
        return {}
    return {
        f"{rule}.{threshold.name}": float(lasting_ms)
        for rule in _LASTING.intersection(rules)
        for threshold in RULES[rule].thresholds
        if threshold.name == "ms" and threshold.default > lasting_ms
    }


def lag_problems(lag: int | None, lag_ms: int | None, subject: str, limits: CheckLimits) -> list[CheckProblem]:
    """Compares with `--max-lag` and `--max-lag-ms`, if given; an unknown lag passes neither."""
    problems = []
    if limits.max_lag is not None and (lag is None or lag > limits.max_lag):
        text = "is unknown" if lag is None else f"is {count(lag, 'record')}, more than {limits.max_lag:,}"
        problems.append(CheckProblem(_MAX_LAG, "critical", f"{subject} {text}."))
    if limits.max_lag_ms is not None and (lag_ms is None or lag_ms > limits.max_lag_ms):
        text = "in time is unknown" if lag_ms is None else f"is {span(lag_ms)}, more than {span(limits.max_lag_ms)}"
        problems.append(CheckProblem(_MAX_LAG_MS, "critical", f"{subject} {text}."))
    return problems


def member_problems(members: int, subject: str, limits: CheckLimits) -> list[CheckProblem]:
    if limits.min_members is None or members >= limits.min_members:
        return []
    summary = f"{subject} has {count(members, 'member')}, fewer than {limits.min_members:,}."
    return [CheckProblem(_MIN_MEMBERS, "critical", summary)]


def summary_line(results: Sequence[CheckResult], kind: str, most: int = 3) -> str:
    """All results in one line, unhealthy ones first; `kind` is the plural of the subjects."""
    unlisted = next((result for result in results if result.subject == GROUP_LIST), None)
    results = [result for result in results if result is not unlisted]
    failing = sorted(
        (result for result in results if not result.healthy),
        key=lambda result: min(problem.order for problem in result.problems),
    )
    if unlisted is not None and not unlisted.healthy:
        others = f" Otherwise {summary_line(results, kind, most)}" if results else ""
        return f"not healthy: {unlisted.line}{others}"
    if not results:
        return f"healthy: no {kind}"
    if len(results) == 1:
        return f"{'not healthy' if failing else 'healthy'}: {results[0].line}"
    if not failing:
        return f"healthy: {len(results):,} {kind}"
    lines = " ".join(result.line for result in failing[:most])
    unnamed = f" And {len(failing) - most:,} more." if len(failing) > most else ""
    return f"not healthy: {len(failing):,} of {len(results):,} {kind}. {lines}{unnamed}"
