"""Authenticates the client at a broker."""
