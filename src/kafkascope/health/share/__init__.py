"""Share groups: every delivery and its outcome."""
