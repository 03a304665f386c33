"""What a build of the marts goes on from: checkpoints, what changed since the last build, and state at a checkpoint."""
