"""Decoded bytes with a name, a value and a meaning for each of them."""
