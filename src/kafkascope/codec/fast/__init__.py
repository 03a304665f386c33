"""Decoders and encoders for well-formed messages, made for each layout."""
