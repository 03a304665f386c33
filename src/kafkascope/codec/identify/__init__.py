"""Identifies bytes whose message is not certain, or that do not decode to their end."""
