"""Rows into Delta tables."""
