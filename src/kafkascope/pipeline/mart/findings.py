"""Builds the marts of findings and of incidents from the other marts. The rules read only what they need of each mart,
one batch at a time."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.health.findings.diagnosis import Finding, findings_of
from kafkascope.health.findings.needs import Need, needs_of
from kafkascope.health.incidents.diagnosis import incidents_of
from kafkascope.health.incidents.incident import Incident
from kafkascope.health.incidents.needs import INCIDENT_NEEDS
from kafkascope.lake.home import Lake
from kafkascope.lake.marts import MARTS
from kafkascope.lake.read.mart_rows import rows
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.write.files import Files
from kafkascope.lake.write.replace import replace


def write_findings(lake: Lake, thresholds: Mapping[str, float], prefix: str) -> list[Finding]:
    findings = list(findings_of(_marts(lake, needs_of(thresholds)), thresholds))
    _replace(
        lake, "findings", [{**asdict(finding), "figures": json.dumps(finding.figures)} for finding in findings], prefix
    )
    return findings


def write_incidents(lake: Lake, findings: list[Finding], prefix: str) -> int:
    """Returns how many there are."""
    incidents = incidents_of(findings, _marts(lake, INCIDENT_NEEDS))
    _replace(lake, "incidents", [incident_row(incident) for incident in incidents], prefix)
    return len(incidents)


def incident_row(incident: Incident) -> dict[str, Any]:
    row = asdict(incident)
    return {**row, "impact": json.dumps(row["impact"]), "consequences": json.dumps(row["consequences"])}


def _marts(lake: Lake, needs: Mapping[str, Need]) -> dict[str, Iterator[dict[str, Any]]]:
    return {name: _rows(lake, name, need) for name, need in needs.items() if lake.has(name)}


def _rows(lake: Lake, name: str, need: Need) -> Iterator[dict[str, Any]]:
    """Most rows of a mart are about healthy traffic: these don't become Python objects."""
    schema = dataset(lake, name).schema

    def column(name: str) -> pc.Expression:
        expression = pc.field(name)
        return expression.cast(pa.int64()) if pa.types.is_timestamp(schema.field(name).type) else expression

    return rows(lake, name, need.columns, None if need.where is None else need.where(column))


def _replace(lake: Lake, name: str, rows: list[dict[str, Any]], prefix: str) -> None:
    schema = MARTS[name].schema
    files = Files(lake, "", prefix)
    if rows:
        plain = pa.schema([(f.name, pa.int64() if pa.types.is_timestamp(f.type) else f.type) for f in schema])
        files.add(MARTS[name], pa.Table.from_pylist(rows, schema=plain).cast(schema))
    replace(lake, MARTS[name], files.close())
