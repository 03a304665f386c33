"""Inputs that once broke the program, and what bounds them."""
