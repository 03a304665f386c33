"""One version of a message, laid out: as the codec needs it, and as people read it."""
