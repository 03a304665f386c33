"""Writes rows into Delta tables."""
