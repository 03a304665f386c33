"""Selects the findings to show and the incidents they are part of, with the verdict and the exchanges that prove
each."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.health.findings.diagnosis import SEVERITIES, Finding, finding_order
from kafkascope.health.findings.rules.rule import Severity
from kafkascope.health.incidents.diagnosis import verdict_of
from kafkascope.health.incidents.incident import key_of
from kafkascope.lake.home import Lake
from kafkascope.lake.read.mart_rows import Row, rows
from kafkascope.report.summaries.incidents import Incidents, incidents_in, shown_incidents
from kafkascope.report.summaries.recorded import exchanges_in
from kafkascope.report.summaries.scope import Scope, both, moment

# With more, a page is only a list, and the mart is a better one.
MOST_FINDINGS = 200
MOST_PROOFS = 5
# A proof may be earlier than its finding: a lock is taken before it expires.
_AROUND_US = 3_600_000_000

_COLUMNS = "rule severity subject_kind subject from_at to_at summary figures advice evidence".split()
UNKNOWN_STATE = "unknown"
_GROUP_KINDS = ("share_", "streams_")


@dataclass(frozen=True, slots=True)
class EvidenceLink:
    """An exchange. Fields that the lake no longer has are None."""

    exchange_id: str
    request_at: int | None = None
    api: str | None = None
    client_id: str | None = None
    capture_uri: str | None = None


@dataclass(frozen=True, slots=True)
class ShownFinding:
    rule: str
    severity: str
    subject_kind: str
    subject: str
    from_at: int | None
    to_at: int | None
    summary: str
    figures: dict[str, Any]
    advice: str
    evidence: tuple[EvidenceLink, ...]
    evidence_left_out: int


@dataclass(frozen=True, slots=True)
class VerdictSummary:
    """The worst incident decides `state` and `sentence`; the counts are of findings. `state` is `unknown` if the lake
    has no `findings`, no `incidents`, or no exchange that a rule could judge."""

    state: str
    sentence: str
    critical: int
    warning: int
    info: int


@dataclass(frozen=True, slots=True)
class Findings:
    verdict: VerdictSummary
    incidents: Incidents
    shown: tuple[ShownFinding, ...]
    left_out: int


def findings_in(lake: Lake, scope: Scope, groups: Iterable[str]) -> Findings:
    """`groups` are all groups of the lake."""
    if not lake.has("findings"):
        reason = "Not judged: this lake has no findings yet. Run kafkascope marts LAKE."
        return _not_judged(reason)
    group_ids = set(groups)
    findings = [
        _finding(row)
        for row in rows(lake, "findings", _COLUMNS, scope.over("from_at", "to_at"))
        if not scope.groups or _is_about(row, scope, group_ids)
    ]
    # Without exchanges no threshold is exceeded, which doesn't mean that the cluster is healthy.
    if not findings and not exchanges_in(lake, scope):
        when = "" if scope.always else " in this time"
        return _not_judged(f"No exchange was recorded{when}, so there was nothing to judge.")
    findings.sort(key=finding_order)
    incidents = incidents_in(lake, {key_of(finding) for finding in findings})
    counts = [sum(finding.severity == severity for finding in findings) for severity in SEVERITIES]
    judged = verdict_of(incidents)
    verdict = VerdictSummary(judged.state, judged.sentence, *counts)
    if not lake.has("incidents"):
        reason = "Not judged: this lake has no incidents yet. Run kafkascope marts LAKE."
        verdict = VerdictSummary(UNKNOWN_STATE, reason, *counts)
    shown = findings[:MOST_FINDINGS]
    proofs = _proofs(lake, shown)
    return Findings(
        verdict,
        shown_incidents(incidents),
        tuple(_shown(finding, proofs) for finding in shown),
        len(findings) - len(shown),
    )


def _not_judged(why: str) -> Findings:
    return Findings(VerdictSummary(UNKNOWN_STATE, why, 0, 0, 0), Incidents((), 0), (), 0)


def _finding(row: Row) -> Finding:
    severity: Severity = row["severity"] if row["severity"] in SEVERITIES else "info"
    first, last = row["from_at"] or 0, row["to_at"]
    return Finding(
        rule=row["rule"] or "",
        severity=severity,
        subject_kind=row["subject_kind"] or "",
        subject=row["subject"] or "",
        from_at=first,
        to_at=first if last is None else last,
        summary=row["summary"] or row["rule"] or "",
        figures=_figures(row["figures"]),
        advice=row["advice"] or "",
        evidence=tuple(row["evidence"] or ()),
    )


def _figures(text: str | None) -> dict[str, int | float | str]:
    try:
        parsed = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    figures = parsed if isinstance(parsed, dict) else {}
    return {name: value for name, value in figures.items() if isinstance(value, int | str) or _is_finite(value)}


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and isfinite(value)


def _is_about(row: Row, scope: Scope, groups: set[str]) -> bool:
    """Whether a finding is about a selected group, or about no group at all. A subject is a group, or a group, a slash
    and a part of it. Since names of groups may contain slashes, the longest group that fits is the right one."""
    subject = row["subject"] or ""
    if not (row["subject_kind"] or "").startswith(_GROUP_KINDS):
        return True
    fitting = [group for group in groups if subject == group or subject.startswith(f"{group}/")]
    return bool(fitting) and scope.takes(max(fitting, key=len))


def _proofs(lake: Lake, findings: list[Finding]) -> dict[str, EvidenceLink]:
    """The exchanges that prove the findings. Only the days around the findings are read."""
    exchange_ids = {name for finding in findings for name in finding.evidence[:MOST_PROOFS]}
    if not exchange_ids:
        return {}
    first = min(finding.from_at for finding in findings) - _AROUND_US
    last = max(finding.to_at for finding in findings) + _AROUND_US
    shown = pc.field("exchange_id").isin(pa.array(sorted(exchange_ids), pa.string()))
    near = (pc.field("request_at") >= moment(first)) & (pc.field("request_at") <= moment(last))
    columns = "exchange_id request_at api client_id capture_uri".split()
    return {row["exchange_id"]: EvidenceLink(**row) for row in rows(lake, "exchanges", columns, both(shown, near))}


def _shown(finding: Finding, proofs: dict[str, EvidenceLink]) -> ShownFinding:
    evidence = tuple(proofs.get(name, EvidenceLink(name)) for name in finding.evidence[:MOST_PROOFS])
    return ShownFinding(
        finding.rule,
        finding.severity,
        finding.subject_kind,
        finding.subject,
        finding.from_at or None,
        finding.to_at or None,
        finding.summary,
        dict(finding.figures),
        finding.advice,
        evidence,
        len(finding.evidence) - len(evidence),
    )
