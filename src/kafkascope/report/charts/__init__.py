"""Draws the report's charts as SVG."""
