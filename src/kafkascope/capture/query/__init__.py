"""Filters exchanges, and computes statistics over them."""
