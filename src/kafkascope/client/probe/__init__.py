"""Calls and checks every version of every API that a node serves."""
