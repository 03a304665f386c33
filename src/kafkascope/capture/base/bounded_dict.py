"""A dict that is bounded in bytes: a new entry evicts the oldest ones."""

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(Generic[K, V]):
    """The caller gives the size of each entry. `bytes` is the sum of all, never more than `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        # Finding the first entry of a plain dict walks over all removed ones.
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def put(self, key: K, value: V, cost: int) -> None:
        """Adds the newest entry, or updates one in its place. An entry larger than the bound is dropped at once."""
        known = self._entries.get(key)
        self.bytes += cost - (0 if known is None else known[1])
        self._entries[key] = (value, cost)
        while self.bytes > self._most:
            _, (_, gone) = self._entries.popitem(last=False)
            self.bytes -= gone

    def pop(self, key: K) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.bytes -= entry[1]
