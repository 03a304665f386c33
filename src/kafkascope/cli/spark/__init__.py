"""What the commands that run on Spark share."""
