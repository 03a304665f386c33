"""Log directories as text."""
