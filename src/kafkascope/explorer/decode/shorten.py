"""Shortens a JSON value to fit on a page: cuts long texts and lists, and reports whether any was cut."""

from typing import Any

from kafkascope.limits import MAX_SHOWN_BYTES, MAX_SHOWN_PIECES


def shorten(value: Any) -> tuple[Any, bool]:
    """Small values stay unchanged."""
    work = _Shorten()
    return work.value(value), work.cut


# Room for all texts of a page. Once it's used up, each shows only its beginning.
_ALL_BYTES = 16 * MAX_SHOWN_BYTES
_BEGINNING = 32


class Room:
    """How many characters of one text are shown when many texts share the room."""

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
