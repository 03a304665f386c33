"""Compiles every kernel before anyone waits for one."""
