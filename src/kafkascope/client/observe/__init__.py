"""A cluster polled for the lake."""
