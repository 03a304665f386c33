"""Generates a decoder and an encoder per layout for well-formed messages."""
