"""Marts summed up for a report."""
