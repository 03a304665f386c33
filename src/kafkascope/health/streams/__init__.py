"""Streams groups: which member held which task."""
