"""Builds the marts from the tables of the lake: one package per subject, on the JVM wherever SQL can express it."""
