"""Markup, icons and textures."""
