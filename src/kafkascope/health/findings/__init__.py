"""Rules over the rows of marts, and the findings they make."""

from kafkascope.health.findings.diagnosis import Finding, Verdict, findings_of, verdict_of

__all__ = ["Finding", "Verdict", "findings_of", "verdict_of"]
