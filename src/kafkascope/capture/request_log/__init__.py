"""Reads a broker's request log."""
