"""Decodes and encodes record data in every format of Produce, Fetch and log segments."""
