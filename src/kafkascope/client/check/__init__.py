"""Judges a running cluster and measures it."""
