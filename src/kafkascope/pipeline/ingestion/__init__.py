"""Recordings into the lake, exactly once."""
