"""What the commands for running clusters share."""
