"""Applies rules to the rows of marts. What fires becomes a finding."""

from kafkascope.health.findings.diagnosis import Finding, Verdict, findings_of, verdict_of

__all__ = ["Finding", "Verdict", "findings_of", "verdict_of"]
