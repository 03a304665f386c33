"""Renders the report's HTML page, section by section."""
