"""Code that the commands that run on Spark share."""
