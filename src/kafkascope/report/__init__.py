"""Marts of a lake in, one HTML page and one JSON document about the health of its clusters out; without a JVM."""
