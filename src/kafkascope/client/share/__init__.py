"""Speaks the share group protocol (KIP-932, 1206, 1222) without I/O: responses and time lead to requests."""
