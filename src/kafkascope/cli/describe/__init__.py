"""Views of a running cluster as text."""
