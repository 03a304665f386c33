"""Rows out of Delta tables: those of ingests that have landed."""
