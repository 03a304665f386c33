"""Reassembles TCP segments into the streams of connections."""
