"""Bytes typed in, and bytes shown."""
