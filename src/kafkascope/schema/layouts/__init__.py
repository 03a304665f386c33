"""Lays out one version of a message, for the codec and for people."""
