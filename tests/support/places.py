"""The catalog in, every field of every layout out by its place: `ShareFetchRequest.Topics.TopicId`."""

from collections.abc import Iterator
from functools import cache
from itertools import product

from kafkascope.schema.catalog import index, message
from kafkascope.schema.model import Field, Message

Path = tuple[str, ...]


def fields_of(known: Message) -> Iterator[tuple[Path, Field]]:
    """Every field of every layout of a message, older layouts of one version too."""

    def visit(fields: tuple[Field, ...], above: Path) -> Iterator[tuple[Path, Field]]:
        for field in fields:
            path = (*above, field.name)
            yield path, field
            yield from visit(field.fields, path)

    for block in known.blocks:
        yield from visit(block.fields, ())


@cache
def every_field() -> dict[str, Field]:
    """By full place."""
    return {".".join((name, *path)): field for name in index() for path, field in fields_of(message(name))}


@cache
def spellings() -> frozenset[str]:
    """Every key that prose may use for a field: its full place, its parent and name, its name; earlier names too."""
    spellings_found: set[str] = set()

    def visit(fields: tuple[Field, ...], above: list[list[str]]) -> None:
        for field in fields:
            names = [field.name, *(earlier for earlier, _ in field.was)]
            path = [*above, names]
            spellings_found.update(names, (".".join(parts) for parts in product(*path)))
            if len(path) > 2:
                spellings_found.update(".".join(parts) for parts in product(*path[-2:]))
            visit(field.fields, path)

    for name in index():
        known = message(name)
        for block in known.blocks:
            visit(block.fields, [[known.name, *(earlier for earlier, _ in known.was)]])
    return frozenset(spellings_found)
