"""Reads the catalog's descriptions of messages, APIs and fields."""

from functools import cache
from os.path import exists, join

from kafkascope.schema.files import DATA_FOLDER, lines, text
from kafkascope.schema.model import Message

FIELDS_MARK = "# fields"


@cache
def _file(name: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Paragraphs and the sentences of one prose file."""
    path = f"prose/messages/{name}.txt"
    if not exists(join(DATA_FOLDER, path)):
        return (), {}
    head, _, tail = text(path).partition(FIELDS_MARK)
    paragraphs = tuple(" ".join(part.split()) for part in head.strip().split("\n\n") if part.strip())
    return paragraphs, _sentences(tail.splitlines())


@cache
def _by_name() -> dict[str, str]:
    return _sentences(lines("prose/fields.txt"))


def _sentences(rows: list[str]) -> dict[str, str]:
    return {place: sentence for place, _, sentence in (row.partition(": ") for row in rows) if sentence}


def paragraphs(message: Message) -> tuple[str, ...]:
    """The purpose of a message: requests and responses share their API's."""
    return _file(message.api or message.name)[0]


def sentence(message: Message, path: tuple[str, ...]) -> str | None:
    """For the field at `path` (names as in the catalog): the most specific sentence."""
    place = ".".join((message.name, *path))
    own = _file(message.api or message.name)[1]
    general = _by_name()
    candidates = [own.get(place), general.get(place)]
    if len(path) > 1:
        candidates.append(general.get(".".join(path[-2:])))
    candidates.append(general.get(path[-1]))
    return next((candidate for candidate in candidates if candidate), None)


def all_places() -> set[str]:
    """Every key that any prose file uses, for the tests that keep prose and catalog consistent."""
    return set(_by_name())
