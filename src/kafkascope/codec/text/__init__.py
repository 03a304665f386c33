"""Parses bytes that people write as text: hex, hex dumps, base64."""
