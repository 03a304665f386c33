"""The decode page: bytes and recordings that a person brings, decoded in a process of their own."""
