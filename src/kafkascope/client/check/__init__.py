"""Verdicts and metrics of a running cluster."""
