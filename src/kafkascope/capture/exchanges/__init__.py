"""Requests paired with their responses, and what their bodies say."""
