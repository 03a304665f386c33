"""Defines the result of decoding: `Decoded`, with a `Span` for every byte if asked for."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# Where a struct's dict keeps the tagged fields that the catalog does not know.
UNKNOWN_TAGS = "_unknownTaggedFields"


@dataclass(frozen=True, slots=True)
class Span:
    """Where a piece lies: `start` inclusive, `end` exclusive, both from the first byte of the body.

    `path` is the field's (`topics[0].partitions`), with `#count`, `#length`, `#present`, `#tags`, `#tag` or `#size`
    behind it for the bytes that frame it. Spans lie in order and leave no byte out.
    """

    path: str
    start: int
    end: int
    type: str


@dataclass(frozen=True, slots=True)
class UnknownTag:
    """A tagged field that the catalog does not know, kept as it came."""

    path: str
    tag: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Decoded:
    """A message's value. `exact` says that encoding it again gives the same bytes; `reasons` say why not."""

    name: str
    version: int
    value: dict[str, Any]
    exact: bool
    reasons: tuple[str, ...]
    spans: tuple[Span, ...]

    @property
    def unknown_tags(self) -> tuple[UnknownTag, ...]:
        """Found in the value when asked for: kept beside it they would take as much room again."""
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
