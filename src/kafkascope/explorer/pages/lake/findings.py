"""Lists the findings of a lake, worst first, each with the exchanges that prove it."""

from dataclasses import asdict
from typing import Any

from kafkascope.errors import InputError
from kafkascope.explorer.page import Page
from kafkascope.health.findings.rules.table import RULES
from kafkascope.lake.home import Lake
from kafkascope.lake.read.mart_rows import has_marts
from kafkascope.report.summaries.findings import ShownFinding, findings_in
from kafkascope.report.summaries.scope import Scope
from kafkascope.times import iso_of


def make(lake: Lake) -> Page:
    if not has_marts(lake):
        raise InputError(f"{lake.uri}: this lake has no marts yet; run kafkascope marts {lake.uri}")
    findings = findings_in(lake, Scope(), ())
    facts = {
        "lake": lake.uri,
        "verdict": asdict(findings.verdict),
        "findings": [_facts(finding) for finding in findings.shown],
        "left": findings.left_out,
    }
    return Page("Findings", facts, "What is wrong in the recorded traffic, and what proves it.")


def _facts(finding: ShownFinding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "documented": finding.rule in RULES,
        "severity": finding.severity,
        "subject_kind": finding.subject_kind,
        "subject": finding.subject,
        "from_at": iso_of(finding.from_at),
        "to_at": iso_of(finding.to_at),
        "summary": finding.summary,
        "figures": finding.figures,
        "advice": finding.advice,
        "evidence": [
            {
                "exchange_id": proof.exchange_id,
                "at": proof.request_at,
                "request_at": iso_of(proof.request_at),
                "api": proof.api,
                "client_id": proof.client_id,
            }
            for proof in finding.evidence
        ],
        "evidence_left": finding.evidence_left_out,
    }
