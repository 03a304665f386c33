"""Streams groups: who held which task."""
