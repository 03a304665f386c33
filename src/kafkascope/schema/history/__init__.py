"""What changed between versions and between releases."""
