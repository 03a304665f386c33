"""Maintains a lake: retention, compaction, upgrades, and the corrections that a later ingest makes."""
