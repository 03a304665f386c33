"""Builds HTML and SVG markup, with the report's icons and textures."""
