"""Exchanges of a recording as text."""
