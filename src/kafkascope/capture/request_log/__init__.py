"""A broker's request log."""
