"""Defines the result of decoding: `Decoded`, with a `Span` for every byte if requested."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# The key of a struct's dict for the tagged fields that the catalog doesn't know.
UNKNOWN_TAGS = "_unknownTaggedFields"


@dataclass(frozen=True, slots=True)
class Span:
    """The place of a piece: `start` inclusive, `end` exclusive, both from the first byte of the body.

    `path` is the field's (`topics[0].partitions`), followed by `#count`, `#length`, `#present`, `#tags`, `#tag` or
    `#size` for the bytes that frame it. Spans are in order and cover every byte.
    """

    path: str
    start: int
    end: int
    type: str


@dataclass(frozen=True, slots=True)
class UnknownTag:
    """A tagged field that the catalog doesn't know, unchanged."""

    path: str
    tag: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Decoded:
    """A message's value. `exact` means that encoding it again makes the same bytes; `reasons` are why not."""

    name: str
    version: int
    value: dict[str, Any]
    exact: bool
    reasons: tuple[str, ...]
    spans: tuple[Span, ...]

    @property
    def unknown_tags(self) -> tuple[UnknownTag, ...]:
        """Searches the value on request: stored separately they would take as much memory again."""
        return tuple(_unknown_tags(self.value, ""))


def _unknown_tags(value: Any, path: str) -> Iterator[UnknownTag]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown_tags(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        for name, item in value.items():
            if name == UNKNOWN_TAGS:
                yield from (UnknownTag(path, tag["tag"], tag["data"]) for tag in item)
            elif isinstance(item, (dict, list)):
                yield from _unknown_tags(item, f"{path}.{name}" if path else name)
