"""Summarizes the marts of a lake for a report."""
