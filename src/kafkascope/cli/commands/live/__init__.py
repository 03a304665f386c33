"""The commands that talk to a live cluster."""
