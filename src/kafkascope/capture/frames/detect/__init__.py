"""Decides which protocol a connection has, and where its next frame begins."""
