"""Follows growing files: waits at the end of each, and starts again with a new file that replaced it."""

from collections.abc import Callable

from kafkascope.capture.files.source import FollowPolicy


class Following:
    """`waiting` is what a source waits with at its end, None if files don't grow. `on_change` is called with a sentence
    about each file that was replaced."""

    def __init__(self, waiting: FollowPolicy | None, on_change: Callable[[str], None]) -> None:
        self.waiting = waiting
        self._on_change = on_change

    @property
    def is_replaced(self) -> bool:
        """If the file being read was replaced or shortened."""
        return self.waiting is not None and self.waiting.changed is not None

    def starts_again(self, uri: str) -> bool:
        """If the file of this name has to be read from its start. Reports the change once."""
        if self.waiting is None or self.waiting.changed is None:
            return False
        self._on_change(f"{uri} was {self.waiting.changed}; reading continues with the new file")
        self.waiting.changed = None
        return True
