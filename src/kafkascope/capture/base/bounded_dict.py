"""A dict within so many bytes: the oldest entries give way to a new one."""

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """What an entry takes is told with it. `bytes` are those of all, never more than `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        # To find the first of a plain dict passes all places whose entries are gone.
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def put(self, key: K, value: V, cost: int) -> None:
        """As the newest, unless it is there; one that takes more than all may is forgotten at once."""
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
