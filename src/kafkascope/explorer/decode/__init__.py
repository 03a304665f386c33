"""Decodes bytes and recordings that people upload, in separate processes."""
