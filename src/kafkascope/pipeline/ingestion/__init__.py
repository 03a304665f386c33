"""Ingests recordings into the lake, exactly once."""
