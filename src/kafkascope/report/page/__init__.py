"""The report's HTML page, part by part."""
