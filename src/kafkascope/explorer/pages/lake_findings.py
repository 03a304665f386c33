"""A lake in, its findings out, the worst first, each with the exchanges that prove it."""

from dataclasses import asdict
from typing import Any

from kafkascope.errors import InputError
from kafkascope.explorer.facts.lake_values import moment
from kafkascope.explorer.page import Page
from kafkascope.lake.home import Lake
from kafkascope.report.summaries.findings import ShownFinding, findings_in
from kafkascope.report.summaries.mart_rows import has_marts
from kafkascope.report.summaries.scope import Scope


def make(lake: Lake) -> Page:
    if not has_marts(lake):
        raise InputError(f"{lake.uri}: this lake has no marts yet: run kafkascope marts {lake.uri}")
    found = findings_in(lake, Scope(), ())
    facts = {
        "lake": lake.uri,
        "verdict": asdict(found.verdict),
        "findings": [_facts(one) for one in found.shown],
        "left": found.left_out,
    }
    return Page("Findings", facts, "What is wrong in the recorded traffic, and what proves it.")


def _facts(one: ShownFinding) -> dict[str, Any]:
    return {
        "rule": one.rule,
        "severity": one.severity,
        "subject_kind": one.subject_kind,
        "subject": one.subject,
        "from_at": moment(one.from_at),
        "to_at": moment(one.to_at),
        "summary": one.summary,
        "figures": one.figures,
        "advice": one.advice,
        "evidence": [
            {
                "exchange_id": proof.exchange_id,
                "at": proof.request_at,
                "request_at": moment(proof.request_at),
                "api": proof.api,
                "client_id": proof.client_id,
            }
            for proof in one.evidence
        ],
        "evidence_left": one.evidence_left_out,
    }
