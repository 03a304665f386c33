"""Reads the rows of ingests that have landed."""
