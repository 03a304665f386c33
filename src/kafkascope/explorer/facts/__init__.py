"""Turns the catalog into the plain facts that pages show."""
