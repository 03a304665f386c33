"""Turns the rows of marts into findings, the worst first, and findings into a verdict.

Each mart is read once, one row at a time; the order of its rows doesn't change the findings. Memory grows with the
subjects in trouble and the number of minutes, not with the number of rows.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kafkascope.formatting import count
from kafkascope.health.findings import api as findings_api
from kafkascope.health.findings import disks as findings_disks
from kafkascope.health.findings import quorum as findings_quorum
from kafkascope.health.findings import recordings as findings_recordings
from kafkascope.health.findings import share as findings_share
from kafkascope.health.findings import streams as findings_streams
from kafkascope.health.findings.advice import advice_of
from kafkascope.health.findings.brokers import Brokers
from kafkascope.health.findings.episodes import Episode, Signs, gather_episodes
from kafkascope.health.findings.rules import disks as findings_disks_rules
from kafkascope.health.findings.rules.rule import Limits, Rule, Severity
from kafkascope.health.findings.rules.table import RULES, limits_of

_Row = Mapping[str, Any]
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")


@dataclass(frozen=True, slots=True)
class Finding:
    """A row of `findings`. Times are microseconds since 1970, UTC; `evidence` are exchange ids."""

    rule: str
    severity: Severity
    subject_kind: str
    subject: str
    from_at: int
    to_at: int
    summary: str
    figures: dict[str, int | float | str]
    advice: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    state: Literal["healthy", "attention", "critical"]
    sentence: str
    critical: int
    warning: int
    info: int


def findings_of(marts: Mapping[str, Iterable[_Row]], thresholds: Mapping[str, float]) -> Iterator[Finding]:
    """`marts` maps a mart to its rows (column to value, times as whole microseconds); a missing mart counts as empty.
    `needs` lists the columns that are read. `thresholds` overrides defaults, as `rule.threshold`."""
    limits = limits_of(thresholds)
    signs = Signs()
    recorded = _read(marts, signs, limits)
    brokers = Brokers(marts.get("brokers", ()), marts.get("groups", ()))
    findings = [
        finding
        for rule in RULES.values()
        for finding in _findings_of_rule(rule, signs, limits[rule.name], recorded, brokers)
    ]
    yield from sorted(findings, key=finding_order)


def finding_order(finding: Finding) -> tuple[int, int, str, str, int]:
    return SEVERITIES.index(finding.severity), finding.from_at, finding.rule, finding.subject, finding.to_at


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    ordered = sorted(findings, key=finding_order)
    numbers = {severity: sum(finding.severity == severity for finding in ordered) for severity in SEVERITIES}
    critical, warning, info = (numbers[severity] for severity in SEVERITIES)
    notes = f"{count(info, 'note')}"
    if critical or warning:
        parts = [count(critical, "critical finding")] * bool(critical) + [count(warning, "warning")] * bool(warning)
        first = ordered[0].summary
        prefix = "" if critical + warning == 1 else "first of them: "
        state: Literal["attention", "critical"] = "critical" if critical else "attention"
        return Verdict(state, f"{' and '.join(parts)}; {prefix}{first}", critical, warning, info)
    return Verdict("healthy", f"Nothing is beyond a threshold{f', {notes}' if info else ''}.", critical, warning, info)


def _read(
    marts: Mapping[str, Iterable[_Row]], signs: Signs, limits: Mapping[str, Limits]
) -> findings_recordings.Recordings:
    def rows(mart: str) -> Iterable[_Row]:
        return marts.get(mart, ())

    recorded = findings_recordings.captures(rows("captures"), signs)
    findings_recordings.quarantine(rows("quarantine"), recorded, signs)
    slow = findings_share.deliveries(rows("share_deliveries"), signs, limits)
    findings_share.minutes(rows("share_group_health"), slow, signs, limits)
    ends = findings_streams.GroupEnds(recorded.until)
    findings_streams.minutes(rows("streams_group_health"), signs, ends)
    findings_streams.unheld(rows("streams_unheld"), signs, ends)
    findings_streams.moves(rows("streams_moves"), signs, limits["streams_long_pause"]["ms"])
    findings_streams.lost_members(rows("streams_lost_members"), signs)
    findings_streams.warmups(rows("streams_tasks"), signs, ends)
    findings_streams.statuses(rows("streams_statuses"), signs, ends)
    findings_quorum.replicas(rows("quorum_replicas"), signs, limits)
    findings_quorum.events(rows("quorum_events"), signs, limits)
    calls = findings_api.latencies(rows("api_latency"), signs, limits)
    findings_api.errors(rows("api_errors"), calls, signs)
    findings_api.throttling(rows("throttling"), signs)
    findings_api.client_versions(rows("client_versions"), signs)
    read_at = findings_disks.replicas(rows("log_health"), signs)
    findings_disks.waste(rows("compaction_waste"), read_at, signs, limits)
    findings_disks.agreements(rows("share_agreement"), read_at, signs)
    findings_disks.partitions(rows("metadata_at"), read_at, signs)
    findings_disks.leader_changes(rows("partition_events"), signs, limits)
    findings_disks.transactions(rows("open_transactions"), signs)
    findings_disks.groups(rows("dead_groups"), signs)
    return recorded


def _findings_of_rule(
    rule: Rule, signs: Signs, limits: Limits, recorded: findings_recordings.Recordings, brokers: Brokers
) -> Iterator[Finding]:
    def episodes() -> Iterator[Episode]:
        for episode in signs.episodes(rule.name, rule.gap_us):
            # A finding that counts by the minute ends with its recording. Log directories aren't one.
            if rule.name not in findings_disks_rules.NAMES:
                episode.to_at = recorded.end_of(episode.from_at, episode.to_at)
            yield episode

    def fires(episode: Episode) -> bool:
        return rule.firing(episode, limits) is not None

    for episode in gather_episodes(episodes(), fires, rule.gap_us):
        firing = rule.firing(episode, limits)
        if firing is None:
            continue
        severity, summary = firing
        kind = episode.parent[0] if episode.parent and episode.subjects > 1 else rule.subject_kind
        yield Finding(
            rule.name,
            severity,
            kind,
            episode.subject,
            episode.from_at,
            episode.to_at,
            summary,
            episode.figures(),
            advice_of(rule, kind, episode, brokers),
            episode.evidence,
        )
