"""Pairs requests with their responses, and reads what their bodies hold."""
