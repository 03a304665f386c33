"""Recordings as files: what holds them, and the packets in them."""
