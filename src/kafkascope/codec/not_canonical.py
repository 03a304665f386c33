"""Defines the signal that a fast reader or writer has met something other than the form Kafka writes."""


class NotCanonical(Exception):
    """Raised by the fast path and caught by its caller, which reads or writes the same again with care."""
