"""Segments put back together into the streams of connections."""
