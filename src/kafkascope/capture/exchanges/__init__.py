"""Pairs requests with their responses, and reads the contents of their bodies."""
