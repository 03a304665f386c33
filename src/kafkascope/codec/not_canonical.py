"""The signal that a fast reader or writer has met something other than the form Kafka writes."""


class NotCanonical(Exception):
    """Raised by the fast path and caught where it was called: the careful one then reads or writes the same again."""
