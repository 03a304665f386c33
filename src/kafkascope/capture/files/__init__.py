"""Reads capture files: opens and decompresses them, and finds their packets."""
