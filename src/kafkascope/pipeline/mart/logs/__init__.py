"""Marts about log directories: what the brokers themselves wrote down."""
