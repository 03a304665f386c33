"""How a client says who it is."""
