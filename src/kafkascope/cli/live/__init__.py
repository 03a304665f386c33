"""Code that the commands for running clusters share."""
