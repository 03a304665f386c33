"""Reads bytes that users type or pipe in, and prints bytes with their meaning."""
