"""Prints views of a running cluster."""
