"""Compiles kernels, and keeps the results on disk."""
