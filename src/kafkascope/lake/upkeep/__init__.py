"""Keeps a lake tidy: retention, compaction, upgrades, and the repairs that a later ingest brings."""
