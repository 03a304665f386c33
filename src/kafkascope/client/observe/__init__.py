"""Polls a cluster for the lake."""
