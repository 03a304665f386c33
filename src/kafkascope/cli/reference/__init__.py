"""Prints the catalog."""
