"""Collects settings from flags, variables and the files of other clients."""
