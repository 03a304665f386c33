"""Reads bytes that people type or pipe in, and prints bytes with their meaning."""
