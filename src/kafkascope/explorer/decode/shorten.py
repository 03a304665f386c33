"""Shortens a JSON value to fit on a page: long texts and lists are cut, and the caller learns whether any was."""

from typing import Any

from kafkascope.limits import MAX_SHOWN_BYTES, MAX_SHOWN_PIECES


def shorten(value: Any) -> tuple[Any, bool]:
    """What is small stays as it is."""
    work = _Shorten()
    return work.value(value), work.cut


# All texts of a page together; once it is used up, each shows its beginning.
_ALL_BYTES = 16 * MAX_SHOWN_BYTES
_BEGINNING = 32


class Room:
    """How much of one text there is room for, when many want some."""

    def __init__(self) -> None:
        self.left = _ALL_BYTES

    def take(self, length: int) -> int:
        taken = min(length, MAX_SHOWN_BYTES if self.left > 0 else _BEGINNING)
        self.left -= taken
        return taken


def short_text(text: str, room: Room) -> str:
    taken = room.take(len(text))
    return text if taken == len(text) else f"{text[:taken]}… {len(text) - taken} more"


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
