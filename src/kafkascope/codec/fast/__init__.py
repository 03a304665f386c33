"""Decodes well-formed messages in C, and generates an encoder per layout for complete values."""
