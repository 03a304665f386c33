"""Packets: link layers, tunnels, IP fragments, and the TCP segments in them."""
