"""Reads the incidents that have a finding in the scope, worst first, and forms the verdict."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

from kafkascope.health.findings.diagnosis import SEVERITIES
from kafkascope.health.incidents.incident import Consequence, FindingKey, Incident, incident_order
from kafkascope.lake.home import Lake
from kafkascope.lake.read.mart_rows import Row, rows

# With more, a page is only a list, and the mart is a better one.
MOST_INCIDENTS = 100

_COLUMNS = (
    "cause severity subject_kind subject from_at to_at title explanation confidence disproof impact advice"
    " consequences notes"
).split()


@dataclass(frozen=True, slots=True)
class ShownConsequence:
    """A finding by its rule, subject and beginning, and its role. The role `cause` means that it shows the cause
    itself."""

    role: str
    rule: str
    subject: str
    from_at: int | None


@dataclass(frozen=True, slots=True)
class ShownIncident:
    cause: str
    severity: str
    subject_kind: str
    subject: str
    from_at: int | None
    to_at: int | None
    title: str
    explanation: str
    confidence: str
    disproof: str
    impact: dict[str, Any]
    advice: str
    consequences: tuple[ShownConsequence, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Incidents:
    """Incidents of severity `info` are notes."""

    shown: tuple[ShownIncident, ...]
    left_out: int


def incidents_in(lake: Lake, findings: Collection[FindingKey]) -> list[Incident]:
    """Incidents with one of these findings, worst first."""
    shown = [incident for incident in _incidents(lake) if any(part.key in findings for part in incident.consequences)]
    return sorted(shown, key=incident_order)


def shown_incidents(incidents: list[Incident]) -> Incidents:
    shown = tuple(_shown(incident) for incident in incidents[:MOST_INCIDENTS])
    return Incidents(shown, len(incidents) - len(shown))


def _incidents(lake: Lake) -> Iterator[Incident]:
    for row in rows(lake, "incidents", _COLUMNS):
        texts = {name: row[name] or "" for name in ("cause", "subject_kind", "subject", "title", "explanation")}
        first, last = row["from_at"] or 0, row["to_at"]
        yield Incident(
            **texts,
            severity=row["severity"] if row["severity"] in SEVERITIES else "info",
            from_at=first,
            to_at=first if last is None else last,
            confidence=row["confidence"] if row["confidence"] in ("certain", "likely") else "possible",
            disproof=row["disproof"] or "",
            impact=_impact(row),
            advice=row["advice"] or "",
            consequences=tuple(_consequences(row)),
            notes=tuple(row["notes"] or ()),
        )


def _impact(row: Row) -> dict[str, int | float]:
    parsed = _parsed(row["impact"])
    figures = parsed if isinstance(parsed, dict) else {}
    return {name: number for name, number in figures.items() if isinstance(number, int | float) and isfinite(number)}


def _consequences(row: Row) -> Iterator[Consequence]:
    parsed = _parsed(row["consequences"])
    for part in parsed if isinstance(parsed, list) else ():
        if isinstance(part, dict) and isinstance(part.get("from_at"), int):
            yield Consequence(
                str(part.get("role", "")), str(part.get("rule", "")), str(part.get("subject", "")), part["from_at"]
            )


def _parsed(text: str | None) -> object:
    try:
        return json.loads(text or "null")
    except (ValueError, RecursionError):
        return None


def _shown(incident: Incident) -> ShownIncident:
    return ShownIncident(
        incident.cause,
        incident.severity,
        incident.subject_kind,
        incident.subject,
        incident.from_at or None,
        incident.to_at or None,
        incident.title,
        incident.explanation,
        incident.confidence,
        incident.disproof,
        dict(incident.impact),
        incident.advice,
        tuple(
            ShownConsequence(part.role, part.rule, part.subject, part.from_at or None) for part in incident.consequences
        ),
        incident.notes,
    )
