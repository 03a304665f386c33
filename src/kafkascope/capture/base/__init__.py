"""Arrays, bounds and batches that all packages of `capture` share."""
