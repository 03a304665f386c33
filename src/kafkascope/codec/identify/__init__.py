"""Bytes whose request or response isn't certain, or that don't decode to their end."""
