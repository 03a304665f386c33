"""Describes a live cluster: each module fetches one view and returns it as a frozen value, with a list of its gaps."""
