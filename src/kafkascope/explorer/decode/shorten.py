"""A JSON value in, one that fits on a page out: long texts and long lists are cut, and whether any was is said."""

from typing import Any

from kafkascope.limits import MAX_SHOWN_BYTES, MAX_SHOWN_PIECES


def shorten(value: Any) -> tuple[Any, bool]:
    """What is small stays as it is."""
    work = _Shorten()
    return work.value(value), work.cut


# All texts of a page together; once it is used up, each shows its beginning.
ALL_BYTES = 16 * MAX_SHOWN_BYTES
BEGINNING = 32


class Room:
    """How much of one text there is room for, when many want some."""

    def __init__(self) -> None:
        self.left = ALL_BYTES

    def take(self, wanted: int) -> int:
        given = min(wanted, MAX_SHOWN_BYTES if self.left > 0 else BEGINNING)
        self.left -= given
        return given


def short_text(text: str, room: Room) -> str:
    given = room.take(len(text))
    return text if given == len(text) else f"{text[:given]}… {len(text) - given} more"


class _Shorten:
    def __init__(self) -> None:
        self.lines = MAX_SHOWN_PIECES
        self.room = Room()
        self.cut = False

    def value(self, value: Any) -> Any:
        self.lines -= 1
        if isinstance(value, str):
            shown = short_text(value, self.room)
            self.cut = self.cut or shown != value
            return shown
        if isinstance(value, dict):
            return {name: self.value(item) for name, item in value.items()}
        if not isinstance(value, list):
            return value
        kept: list[Any] = []
        for item in value:
            if self.lines <= 0:
                self.cut = True
                break
            kept.append(self.value(item))
        return kept
