"""Finds TCP segments in packets, through link layers, tunnels and IP fragments."""
