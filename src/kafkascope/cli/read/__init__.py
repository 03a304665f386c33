"""Prints exchanges of a recording."""
