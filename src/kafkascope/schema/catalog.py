"""Loads message definitions from the catalog, each from its own small text file on first use."""

from dataclasses import dataclass
from functools import cache

from kafkascope.schema.files import lines, text
from kafkascope.schema.model import Block, Field, ListedError, Message
from kafkascope.schema.releases import parse_span
from kafkascope.schema.versions import Versions, parse_versions


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A line of the index: enough to list and find a message without opening it."""

    name: str
    kind: str
    key: int | None
    versions: Versions
    aliases: tuple[str, ...]


@cache
def index() -> dict[str, IndexEntry]:
    entries = {}
    for line in lines("index.txt"):
        name, kind, key, versions, aliases = line.split(" ")
        entries[name] = IndexEntry(
            name,
            kind,
            None if key == "-" else int(key),
            parse_versions(versions),
            () if aliases == "-" else tuple(aliases.split(",")),
        )
    return entries


@cache
def apis() -> dict[int, str]:
    """API key to name: 78 is `ShareFetch`."""
    requests = [entry for entry in index().values() if entry.kind == "request" and entry.key is not None]
    return {
        e.key: e.name.removesuffix("Request") for e in sorted(requests, key=lambda e: e.key or 0) if e.key is not None
    }


@cache
def message(name: str) -> Message:
    """By its exact current name; `names.find` accepts what people type."""
    return parse_message(text(f"messages/{name}.txt"))


def parse_message(content: str) -> Message:
    rows = content.splitlines()
    facts: dict[str, list[list[str]]] = {}
    blocks: list[Block] = []
    at = 1
    while at < len(rows):
        words = rows[at].split()
        at += 1
        if words[0] != "layout":
            facts.setdefault(words[0], []).append(words[1:])
            continue
        end = at
        while end < len(rows) and rows[end].startswith(" "):
            end += 1
        options = dict(zip(words[2::2], words[3::2], strict=True))
        blocks.append(
            Block(
                parse_versions(words[1]),
                parse_versions(options["flexible"]),
                parse_span(options["releases"]) if "releases" in options else None,
                _fields(rows[at:end], 2)[0],
            )
        )
        at = end
    return Message(
        name=rows[0],
        kind=facts["kind"][0][0],
        key=int(facts["key"][0][0]) if "key" in facts else None,
        was=tuple((name, last) for last, name in facts.get("was", [])),
        valid=tuple((parse_span(span), parse_versions(v)) for span, v in facts.get("valid", [])),
        listeners=tuple((parse_span(span), tuple(v.split(","))) for span, v in facts.get("listeners", [])),
        unstable=tuple((parse_span(span), int(v)) for span, v in facts.get("unstable", [])),
        deprecated=tuple((parse_span(span), parse_versions(v)) for span, v in facts.get("deprecated", [])),
        patches=tuple((patch, parse_versions(v)) for patch, v in facts.get("patch", [])),
        kips=tuple((int(v), tuple(map(int, numbers))) for v, *numbers in facts.get("kip", [])),
        errors=tuple(
            ListedError(name, parse_versions(v), () if fields == "-" else tuple(fields.split(",")))
            for name, v, fields in facts.get("error", [])
        ),
        blocks=tuple(blocks),
    )


def _fields(rows: list[str], indent: int) -> tuple[tuple[Field, ...], int]:
    """The fields at this depth, and how many rows they took, with everything nested in them."""
    fields: list[Field] = []
    at = 0
    while at < len(rows):
        row = rows[at]
        depth = len(row) - len(row.lstrip(" "))
        if depth < indent:
            break
        children, taken = _fields(rows[at + 1 :], indent + 2)
        fields.append(_field(row.split(), children))
        at += 1 + taken
    return tuple(fields), at


def _field(words: list[str], children: tuple[Field, ...]) -> Field:
    name, type_, versions, *rest = words
    options = dict(word.partition("=")[::2] for word in rest)
    tag, _, tagged = options.get("tag", "").partition("@")
    was = [item.split("@") for item in options.get("was", "").split(",") if item]
    return Field(
        name=name,
        type=type_.removeprefix("[]"),
        array=type_.startswith("[]"),
        versions=parse_versions(versions),
        nullable=parse_versions(options.get("null", "none")),
        tag=int(tag) if tag else None,
        tagged=parse_versions(tagged or "none"),
        default=options.get("default"),
        entity=options.get("entity"),
        map_key="key" in options,
        ignorable="ignorable" in options,
        classic="classic" in options,
        since=options.get("since"),
        was=tuple((earlier, last) for earlier, last in was),
        fields=children,
    )
