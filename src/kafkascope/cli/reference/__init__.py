"""The catalog as text."""
