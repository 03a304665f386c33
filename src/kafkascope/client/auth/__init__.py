"""Authenticates a client."""
