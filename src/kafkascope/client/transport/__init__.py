"""Opens connections to nodes and carries frames."""
