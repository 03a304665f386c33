"""Searches APIs, messages, fields, errors, releases and KIPs, and builds the index for the browser's search.

`entries` are the same for the script in the browser and for the server's own search page; `index_script` packs them.
"""

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from kafkascope.explorer.facts.field_places import field_places, places_in
from kafkascope.explorer.facts.kips import kip_apis
from kafkascope.formatting import first_names
from kafkascope.schema.api_facts import family_of
from kafkascope.schema.catalog import apis, index, message
from kafkascope.schema.errors.error_codes import error_codes
from kafkascope.schema.model import Message
from kafkascope.schema.releases import releases

MOST_RESULTS = 24
# Kinds in the order in which they stand among equals.
_KINDS = ("api", "error", "release", "kip", "message", "record", "name", "field")


class SearchEntry(NamedTuple):
    """`also` are other words that find it: numbers, earlier names."""

    kind: str
    text: str
    about: str
    address: str
    also: tuple[str, ...] = ()


@cache
def entries() -> tuple[SearchEntry, ...]:
    return (*_apis(), *_errors(), *_releases(), *_kips(), *_names(), *_messages())


def _apis() -> Iterator[SearchEntry]:
    for key, api in apis().items():
        was = tuple(alias.removesuffix("Request") for alias in index()[f"{api}Request"].aliases)
        yield SearchEntry("api", api, f"API {key} · {family_of(api)}", f"api/{api}.html", (str(key), *was))


def _errors() -> Iterator[SearchEntry]:
    for error in error_codes().values():
        also = (str(error.code), *error.aliases, *((error.exception,) if error.exception else ()))
        yield SearchEntry("error", error.name, f"error {error.code}", f"error/{error.name}.html", also)


def _releases() -> Iterator[SearchEntry]:
    for release in reversed(releases()):
        yield SearchEntry(
            "release", f"Kafka {release.name}", "release", f"release/{release.name}.html", (release.name,)
        )


def _kips() -> Iterator[SearchEntry]:
    for number, names in kip_apis().items():
        yield SearchEntry("kip", f"KIP-{number}", first_names(names, 3), f"kip/{number}.html", (str(number),))


def _names() -> Iterator[SearchEntry]:
    """Fields of one name in several places; one that is alone is found there."""
    for name, places in field_places().items():
        if len(places) > 1:
            yield SearchEntry("name", name, f"field in {len(places)} places", f"field/{name}.html")


def _messages() -> Iterator[SearchEntry]:
    for name, entry in index().items():
        definition = message(name)
        kind = "message" if definition.kind in ("request", "response", "header") else "record"
        newest = definition.all_versions()[-1]
        about = f"{definition.kind} v{newest}"
        yield SearchEntry(kind, name, about, f"{kind}/{name}/{newest}.html", entry.aliases)
        for place in places_in(definition):
            path = ".".join(place.path)
            yield SearchEntry("field", place.path[-1], f"{name} {path}", f"{kind}/{name}/{place.version}.html#f-{path}")


def search(query: str) -> list[SearchEntry]:
    """The best first. Every word must be in an entry; the script in the browser ranks alike."""
    words = query.lower().split()
    if not words:
        return []
    ranked = []
    for order, entry in enumerate(entries()):
        rank = _rank(entry, words)
        if rank is not None:
            ranked.append(((rank, _KINDS.index(entry.kind), _depth(entry), order), entry))
    ranked.sort(key=lambda item: item[0])
    return [entry for _, entry in ranked[:MOST_RESULTS]]


def _depth(entry: SearchEntry) -> int:
    """Of fields those at the top of a message first, those of requests and responses before those of records."""
    return 2 * entry.about.count(".") + entry.address.startswith("record/") if entry.kind == "field" else 0


def _rank(entry: SearchEntry, words: list[str]) -> int | None:
    text = entry.text.lower()
    whole = " ".join((text, entry.about.lower(), *entry.also)).lower()
    humps = _humps(entry.text)
    if not all(word in whole or humps.startswith(word) for word in words):
        return None
    first = words[0]
    names = (text, *(alias.lower() for alias in entry.also))
    if first in names:
        return 0
    if any(name.startswith(first) for name in names):
        return 1
    if humps.startswith(first):
        return 2
    if first in text:
        return 3
    # One word that is only in a message's name means the message, not each of its fields.
    return None if entry.kind == "field" and len(words) == 1 else 4


def _humps(text: str) -> str:
    """`sf` of ShareFetch, `irs` of INVALID_RECORD_STATE."""
    if "_" in text:
        return "".join(part[:1] for part in text.split("_")).lower()
    return "".join(letter for letter in text if letter.isupper()).lower()


def index_script() -> str:
    packed: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
    for entry in entries():
        if entry.kind in ("api", "error", "release", "kip", "name"):
            packed[entry.kind].append([entry.text, entry.about, *entry.also])
    for name in index():
        definition = message(name)
        kind = "message" if definition.kind in ("request", "response", "header") else "record"
        newest = definition.all_versions()[-1]
        row = [name, definition.kind, newest, _packed_fields(definition, newest), *index()[name].aliases]
        packed[kind].append(row)
    del packed["field"]
    data = json.dumps(packed, ensure_ascii=False, separators=(",", ":"))
    finder = files("kafkascope.explorer").joinpath("static", "find.js").read_text(encoding="utf-8")
    return f"window.kafkascope={{data:{data}}};\n{finder}"


def _packed_fields(definition: Message, newest: int) -> str:
    """`GroupId,Topics(TopicId,Partitions(PartitionIndex)),ReplicaId@14`: a version where it is not the newest."""
    versions = {".".join(place.path): place.version for place in places_in(definition)}
    tree: dict[str, Any] = {}
    for path in versions:
        at = tree
        for part in path.split("."):
            at = at.setdefault(part, {})

    def pack(level: dict[str, Any], above: str) -> str:
        rows = []
        for name, inner in level.items():
            path = f"{above}{name}"
            mark = "" if versions[path] == newest else f"@{versions[path]}"
            rows.append(f"{name}{mark}" + (f"({pack(inner, path + '.')})" if inner else ""))
        return ",".join(rows)

    return pack(tree, "")
