"""Joins findings into incidents: one story with its cause first and its consequences under it."""

from kafkascope.health.incidents.diagnosis import incidents_of, verdict_of
from kafkascope.health.incidents.incident import Consequence, Incident

__all__ = ["Consequence", "Incident", "incidents_of", "verdict_of"]
