"""Turns findings into incidents, the worst first, and incidents into a verdict."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from kafkascope.formatting import count
from kafkascope.health.findings.diagnosis import SEVERITIES, Finding
from kafkascope.health.findings.rules.rule import Severity
from kafkascope.health.incidents import client_accounts, member_accounts, node_accounts
from kafkascope.health.incidents.account import Account
from kafkascope.health.incidents.facts import Facts, read_facts
from kafkascope.health.incidents.impact import impact_of
from kafkascope.health.incidents.incident import Consequence, Incident, incident_order, key_of
from kafkascope.health.incidents.stories import Stories, Story

Row = Mapping[str, Any]

_CAUSE = "cause"
_ACCOUNTS: dict[str, Callable[[Story, Facts], Account]] = {
    "recording_incomplete": client_accounts.recording_incomplete,
    "recording_unread": client_accounts.recording_unread,
    "leader_lost": node_accounts.leader_lost,
    "node_behind": node_accounts.node_behind,
    "poison_record": member_accounts.poison_record,
    "member_hung": member_accounts.member_hung,
    "member_crashed": member_accounts.member_crashed,
    "member_slow": member_accounts.member_slow,
    "login_refused": client_accounts.login_refused,
    "access_denied": client_accounts.access_denied,
    "broker_slow": node_accounts.broker_slow,
    "quota_exceeded": client_accounts.quota_exceeded,
    "client_too_old": client_accounts.client_too_old,
    "ordinary_errors": client_accounts.ordinary_errors,
}


@dataclass(frozen=True, slots=True)
class IncidentVerdict:
    state: Literal["healthy", "attention", "critical"]
    sentence: str


def incidents_of(findings: Iterable[Finding], marts: Mapping[str, Iterable[Row]]) -> list[Incident]:
    """Every finding is in exactly one incident. `marts` maps each mart to its rows (column to value, times as whole
    microseconds); `needs` lists the columns that are read. With fewer marts the incidents have fewer details."""
    findings = list(findings)
    facts = read_facts(findings, marts)
    return sorted((_incident(story, facts) for story in Stories(facts).join(findings)), key=incident_order)


def verdict_of(incidents: Iterable[Incident]) -> IncidentVerdict:
    """The worst incident decides; incidents of severity `info` are notes."""
    ordered = sorted(incidents, key=incident_order)
    notes = sum(incident.severity == "info" for incident in ordered)
    others = len(ordered) - notes - 1
    if others < 0:
        noted = f", {count(notes, 'note')}" if notes else ""
        return IncidentVerdict("healthy", f"No incident{noted}.")
    more = f" {count(others, 'more incident')}." if others else ""
    state: Literal["attention", "critical"] = "critical" if ordered[0].severity == "critical" else "attention"
    return IncidentVerdict(state, f"{ordered[0].title}{more}")


def _incident(story: Story, facts: Facts) -> Incident:
    tell = _ACCOUNTS.get(story.cause.name if story.cause else "", client_accounts.as_the_rule_says)
    account = tell(story, facts)
    impact, notes = impact_of(story, facts)
    consequences = [Consequence(_CAUSE, *key_of(finding)) for finding in story.anchors]
    consequences += [
        Consequence(role, *key_of(finding))
        for role, finding in sorted(story.consequences, key=lambda item: (item[1].from_at, *key_of(item[1])))
    ]
    return Incident(
        **asdict(account),
        severity=_severity(story),
        from_at=min(finding.from_at for finding in story.anchors),
        to_at=_end(story, facts),
        impact=impact,
        consequences=tuple(consequences),
        notes=notes,
    )


def _end(story: Story, facts: Facts) -> int:
    """A finding that counts by the minute ends with its minute, but not after the recording."""
    end = max(finding.to_at for finding in story.findings())
    return end if facts.recorded_until is None else max(story.from_at, min(end, facts.recorded_until))


def _severity(story: Story) -> Severity:
    if story.cause is not None and story.cause.name == "ordinary_errors":
        return "info"
    return min((finding.severity for finding in story.findings()), key=SEVERITIES.index)
