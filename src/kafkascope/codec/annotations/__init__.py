"""Annotates decoded bytes with field, value and meaning."""
