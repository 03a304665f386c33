"""Writes what a task reads as rows of the lake's tables."""
