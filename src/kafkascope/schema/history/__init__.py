"""Compares versions and releases: what changed on the wire."""
