"""Reads what brokers keep on their disks: segments, their indexes, snapshots and checkpoints. Never writes there."""
