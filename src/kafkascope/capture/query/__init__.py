"""Filters and statistics over exchanges."""
