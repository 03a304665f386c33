"""Defines an incident: its cause, its consequences, what it cost, and what would disprove it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kafkascope.health.findings.diagnosis import SEVERITIES, Finding
from kafkascope.health.findings.rules.rule import Severity

Confidence = Literal["certain", "likely", "possible"]
FindingKey = tuple[str, str, int]

# Weights for comparing incidents. Late records and failed calls are retried by the clients; an archived record is never
# processed; without a leader no topic or partition of the cluster can change.
WEIGHTS = {
    "records_archived": 100.0,
    "records_late": 1.0,
    "calls_failed": 1.0,
    "seconds_without_leader": 60.0,
    "seconds_without_owner": 10.0,
}


@dataclass(frozen=True, slots=True)
class Consequence:
    """A finding of an incident, by its key, and its role; the role `cause` is for findings that show the cause."""

    role: str
    rule: str
    subject: str
    from_at: int

    @property
    def key(self) -> FindingKey:
        return self.rule, self.subject, self.from_at


@dataclass(frozen=True, slots=True)
class Incident:
    """A row of `incidents`. Times are microseconds since 1970, UTC. Names in the sentences are in backticks."""

    cause: str
    severity: Severity
    subject_kind: str
    subject: str
    from_at: int
    to_at: int
    title: str
    explanation: str
    confidence: Confidence
    disproof: str
    impact: Mapping[str, int | float]
    advice: str
    consequences: tuple[Consequence, ...]
    notes: tuple[str, ...]

    @property
    def weight(self) -> float:
        return sum(WEIGHTS.get(name, 0.0) * number for name, number in self.impact.items())


def key_of(finding: Finding) -> FindingKey:
    """The key is unique among the findings of one diagnosis."""
    return finding.rule, finding.subject, finding.from_at


def incident_order(incident: Incident) -> tuple[int, float, int, str, str]:
    """The worst first: by severity, then by what it cost, then the earliest."""
    severity = SEVERITIES.index(incident.severity)
    return severity, -incident.weight, incident.from_at, incident.cause, incident.subject
