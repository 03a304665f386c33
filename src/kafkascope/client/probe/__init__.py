"""Every version of every API that a node offers, called and checked."""
