"""Arrays, bounds and batches that every room of `capture` shares."""
