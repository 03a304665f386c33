"""Formats what an incident cost and which findings are its consequences."""

from collections.abc import Mapping

from kafkascope.report.summaries.findings import ShownFinding
from kafkascope.report.summaries.incidents import ShownConsequence, ShownIncident
from kafkascope.report.words import clock, lasting, number

# The role of a finding that shows the cause itself.
CAUSE = "cause"
CAUSE_WORDS = {
    "access_denied": "access denied",
    "application_stopped": "application stopped",
    "broker_slow": "broker slow",
    "client_too_old": "client too old",
    "group_without_members": "group without members",
    "leader_lost": "leader lost",
    "login_refused": "login refused",
    "member_crashed": "member crashed",
    "member_hung": "member hung",
    "member_slow": "member slow",
    "node_down": "node down",
    "node_frozen": "node frozen",
    "node_slow": "node slow",
    "ordinary_errors": "ordinary errors",
    "poison_record": "poison record",
    "quota_exceeded": "quota exceeded",
    "recording_incomplete": "recording incomplete",
    "recording_unread": "recording not read",
}


def impact_words(impact: Mapping[str, float]) -> list[str]:
    """`4 records late`, `2.1 s without a leader`: worst first."""
    words = []
    for name, single, several in (
        ("records_archived", "1 record lost", "records lost"),
        ("records_late", "1 record late", "records late"),
        ("calls_failed", "1 call failed", "calls failed"),
    ):
        if impact.get(name):
            words.append(single if impact[name] == 1 else f"{number(impact[name])} {several}")
    for name, phrase in (
        ("seconds_without_leader", "{} without a leader"),
        ("seconds_without_owner", "tasks without owner for {} in all"),
    ):
        if impact.get(name):
            words.append(phrase.format(lasting(round(impact[name] * 1_000_000))))
    return words


def incident_name(place: int) -> str:
    """The incident's id on the page, by its place from 1. The timeline links to it."""
    return f"incident-{place}"


def finding_key(part: ShownFinding | ShownConsequence) -> tuple[str, str, int | None]:
    return part.rule, part.subject, part.from_at


def consequence_words(part: ShownConsequence, finding: ShownFinding | None, incident: ShownIncident) -> str:
    """The finding's sentence. One that counts whole minutes says from when, if that was before the incident."""
    if finding is None:
        return f"{part.rule}, `{part.subject}`"
    if finding.from_at is None or incident.from_at is None or finding.from_at >= incident.from_at:
        return finding.summary
    return f"{finding.summary.removesuffix('.')}, counted from {clock(finding.from_at, 1_000_000)} UTC on."


def consequences_of(incident: ShownIncident) -> list[ShownConsequence]:
    """The findings that don't show the cause itself."""
    return [part for part in incident.consequences if part.role != CAUSE]
