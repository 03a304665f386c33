"""The catalog in, every (message, version) out, and every layout besides where releases lay one version out apart."""

from typing import TypeVar

from kafkascope.schema.catalog import index, message

T = TypeVar("T")
Pair = tuple[str, int]
Place = tuple[str, int, str | None]

# Tests over the whole catalog run in this many pieces, so that parallel workers share them evenly.
CHUNKS = 16


def every_pair() -> list[Pair]:
    return [(name, version) for name in index() for version in message(name).all_versions()]


def every_place() -> list[Place]:
    """Each pair as its newest release has it, and once more for each older layout of its own."""
    places: list[Place] = [(name, version, None) for name, version in every_pair()]
    for name in index():
        for block in message(name).blocks:
            if block.releases is not None:
                places += [(name, v, block.releases.first) for v in message(name).all_versions() if v in block.versions]
    return places


def chunk_of(items: list[T], chunk: int) -> list[T]:
    """Every sixteenth, so that large and small messages mix."""
    return items[chunk::CHUNKS]
