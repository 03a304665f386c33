"""Looks at a cluster in, healthy or not out: the rules of the findings on what one or several looks saw, and the limits
that somebody set. What is unknown is never taken for healthy where a limit is about it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from kafkascope.client.describe.gaps import Gap
from kafkascope.health.findings.diagnosis import SEVERITIES, findings_of
from kafkascope.health.findings.rule import Severity
from kafkascope.health.findings.rules import RULES
from kafkascope.health.findings.words import count, span

View = TypeVar("View")
Row = Mapping[str, Any]

# Rules about something that is there the whole time, or is not.
LASTING = frozenset({"quorum_replica_never_fetched", "streams_task_unheld", "streams_missing_internal_topics"})
# The subject of a check that found groups missing from the list.
LIST = "list of groups"
MAX_LAG, MAX_LAG_MS, MIN_MEMBERS = "max_lag", "max_lag_ms", "min_members"


@dataclass(frozen=True, slots=True)
class Look(Generic[View]):
    """`at` is microseconds since 1970."""

    at: int
    view: View


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody asks for beside the rules. `lasting_ms` is how long was looked, 0 for one look: a rule that needs
    more time than that fires on what lasted all of it. `fail_on` is the least severity that is not healthy."""

    max_lag: int | None = None
    max_lag_ms: int | None = None
    min_members: int | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    lasting_ms: int = 0
    fail_on: Severity = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """`rule` is that of a finding, or the limit that was passed: max_lag, max_lag_ms, min_members."""

    rule: str
    severity: Severity
    summary: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdict on one subject. `says` is what it looks like, `notes` are problems below what is asked for."""

    check: str
    subject: str
    healthy: bool
    says: str
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]
    figures: Mapping[str, int | str | None]
    gaps: tuple[Gap, ...]

    @property
    def line(self) -> str:
        """`share group orders: 2 members, Stable, lag 12`"""
        return f"{self.subject}: {' '.join(one.summary for one in self.problems) if self.problems else self.says}"


def verdict(
    check: str,
    subject: str,
    says: str,
    problems: Iterable[Problem],
    wanted: Wanted,
    figures: Mapping[str, int | str | None],
    gaps: Iterable[Gap],
) -> Checked:
    found = sorted(problems, key=lambda one: SEVERITIES.index(one.severity))
    severe = SEVERITIES[: SEVERITIES.index(wanted.fail_on) + 1]
    bad = tuple(one for one in found if one.severity in severe)
    notes = tuple(one for one in found if one.severity not in severe)
    return Checked(check, subject, not bad, says, bad, notes, figures, tuple(gaps))


def judged(
    marts: Mapping[str, Iterable[Row]], rules: Collection[str], wanted: Wanted, own: Mapping[str, float] | None = None
) -> list[Problem]:
    """Findings of these rules. `own` are thresholds that the cluster itself sets; those that somebody asks for win."""
    limits = {**(own or {}), **_shortened(rules, wanted.lasting_ms), **wanted.thresholds}
    return [
        Problem(one.rule, one.severity, one.summary, one.advice)
        for one in findings_of(marts, limits)
        if one.rule in rules
    ]


def _shortened(rules: Collection[str], lasting_ms: int) -> dict[str, float]:
    """No trouble can reach its threshold in less time than that: all of the time is enough then."""
    if not lasting_ms:
        return {}
    return {
        f"{rule}.{one.name}": float(lasting_ms)
        for rule in LASTING.intersection(rules)
        for one in RULES[rule].thresholds
        if one.name == "ms" and one.default > lasting_ms
    }


def lag_problems(lag: int | None, lag_ms: int | None, whose: str, wanted: Wanted) -> list[Problem]:
    """Against `--max-lag` and `--max-lag-ms`, each where it is asked for; an unknown lag passes neither."""
    found = []
    if wanted.max_lag is not None and (lag is None or lag > wanted.max_lag):
        said = "is unknown" if lag is None else f"is {count(lag, 'record')}, more than {wanted.max_lag:,}"
        found.append(Problem(MAX_LAG, "critical", f"{whose} {said}."))
    if wanted.max_lag_ms is not None and (lag_ms is None or lag_ms > wanted.max_lag_ms):
        said = "in time is unknown" if lag_ms is None else f"is {span(lag_ms)}, more than {span(wanted.max_lag_ms)}"
        found.append(Problem(MAX_LAG_MS, "critical", f"{whose} {said}."))
    return found


def member_problems(members: int, whose: str, wanted: Wanted) -> list[Problem]:
    if wanted.min_members is None or members >= wanted.min_members:
        return []
    said = f"{whose} has {count(members, 'member')}, fewer than {wanted.min_members:,}."
    return [Problem(MIN_MEMBERS, "critical", said)]


def one_line(checked: Sequence[Checked], kind: str, most: int = 3) -> str:
    """All of them in one line, what is not healthy first; `kind` is the word for several."""
    unlisted = next((one for one in checked if one.subject == LIST), None)
    checked = [one for one in checked if one is not unlisted]
    bad = [one for one in checked if not one.healthy]
    if unlisted is not None and not unlisted.healthy:
        rest = f" Else {one_line(checked, kind, most)}" if checked else ""
        return f"not healthy: {unlisted.line}{rest}"
    if not checked:
        return f"healthy: no {kind} there"
    if len(checked) == 1:
        return f"{'not healthy' if bad else 'healthy'}: {checked[0].line}"
    if not bad:
        return f"healthy: {len(checked):,} {kind}"
    told = " ".join(one.line for one in bad[:most])
    more = f" And {len(bad) - most:,} more." if len(bad) > most else ""
    return f"not healthy: {len(bad):,} of {len(checked):,} {kind}. {told}{more}"
