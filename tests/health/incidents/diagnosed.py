"""Rows of marts in, the incidents that they make out."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from kafkascope.health.findings.diagnosis import Finding, findings_of
from kafkascope.health.incidents.diagnosis import incidents_of
from kafkascope.health.incidents.incident import Incident


def diagnosed(marts: Mapping[str, Iterable[Any]], **thresholds: float) -> tuple[list[Finding], list[Incident]]:
    rows = {name: [_plain(row) for row in mart] for name, mart in marts.items()}
    findings = list(findings_of(rows, thresholds))
    return findings, incidents_of(findings, rows)


def _plain(row: Any) -> dict[str, Any]:
    return asdict(row) if is_dataclass(row) and not isinstance(row, type) else row


def joined(*several: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    marts: dict[str, list[dict[str, Any]]] = {}
    for part in several:
        for name, rows in part.items():
            marts.setdefault(name, []).extend(rows)
    return marts


def roles(incident: Incident) -> list[tuple[str, str]]:
    return [(part.role, part.rule) for part in incident.consequences]
