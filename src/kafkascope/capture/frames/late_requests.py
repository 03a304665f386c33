"""Responses that are recorded before their requests, of a connection whose start is not: they wait until a request
tells what they are. Each direction can have a file of its own, and a broker may hang up first."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafkascope.capture.base.flow import Frames
from kafkascope.capture.frames.frame_table import (
    ConnSlot,
    Given,
)

if TYPE_CHECKING:
    from kafkascope.capture.frames.framing import Framer


def may_ask(framer: "Framer", stream: int) -> bool:
    """Whether more requests may be found in this stream."""
    return stream in framer._searches or framer._tables.place.item(stream) >= 0


def is_held_back(framer: "Framer", stream: int, end: Given) -> bool:
    """Whether responses that end here, and are not found, may be found when more requests are known."""
    search = framer._searches[stream]
    if not search.row & 1 or not may_ask(framer, stream ^ 1) or framer._find(search, final=True) is not None:
        return False
    search.end, search.asked = end, framer._tables.slots.item(search.row >> 1, ConnSlot.ASKED)
    return True


def look_again(framer: "Framer") -> Iterator[Frames]:
    """At responses that were held back, where requests have come since, or none can come any more."""
    for stream, search in list(framer._searches.items()):
        if search.end is None:
            continue
        asked = framer._tables.slots.item(search.row >> 1, ConnSlot.ASKED)
        known, search.asked = search.asked, asked
        if not may_ask(framer, stream ^ 1) or (asked > known and framer._find(search, final=True) is not None):
            framer._last_chance(stream, search.end)
            yield from framer._run()
