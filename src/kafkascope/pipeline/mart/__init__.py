"""Builds the marts from the tables of the lake: one module per subject, on the JVM wherever SQL can express it."""
