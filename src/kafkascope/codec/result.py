"""What decoding gives: `Decoded`, with `Span`s that name every byte when they were asked for."""

from dataclasses import dataclass
from typing import Any


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
    unknown_tags: tuple[UnknownTag, ...]
