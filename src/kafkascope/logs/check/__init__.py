"""Checks segments and what belongs to them against each other."""
