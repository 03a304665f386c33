"""Builds the whole catalog from Kafka's releases: messages, index, releases, error codes."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools.catalog.definitions import Definition, parse
from tools.catalog.facts import ErrorFact, ask
from tools.catalog.jars import ROOT, Release, definition_texts, fetch_releases, read_patches, source_texts
from tools.catalog.merge import Merged, merge, release_key, valid_versions
from tools.catalog.versions import format_set
from tools.catalog.write import message_lines, write_folder

DATA = ROOT / "src" / "kafkascope" / "schema" / "data"
Key = tuple[str, int] | str


@dataclass(slots=True)
class Catalog:
    messages: dict[str, list[str]]
    index: list[str]
    releases: list[str]
    errors: list[str]


def build(releases: list[Release], source: tuple[str, Path] | None = None, only: set[str] | None = None) -> Catalog:
    """`source` adds a release out of a source folder; `only` keeps the messages of these APIs or names."""
    patches = read_patches(releases)
    fetch_releases([*releases, *patches])
    facts = ask(releases)
    definitions: dict[Key, dict[str, Definition]] = {}
    in_clients: set[Key] = set()
    covered: dict[bool, list[str]] = {True: [], False: []}
    texts: list[tuple[str, Iterable[tuple[str, str]]]] = [
        (r.name, definition_texts(r)) for r in releases if r.has_definitions
    ]
    if source:
        texts.append((source[0], source_texts(source[1])))
    for release, files in texts:
        for artifact, text in files:
            definition = parse(text)
            key = _key(definition)
            definitions.setdefault(key, {})[release] = definition
            clients = artifact == "kafka-clients"
            if clients:
                in_clients.add(key)
            if release not in covered[clients]:
                covered[clients].append(release)
    in_patches = _versions_in_patches(patches)
    names = [r.name for r in releases] + ([source[0]] if source else [])
    catalog = Catalog({}, [], _release_lines(releases, source), _error_lines({n: f.errors for n, f in facts.items()}))
    merged: list[Merged] = []
    for key, by_release in definitions.items():
        message = merge(by_release)
        if only and not {message.name, message.name.removesuffix("Request").removesuffix("Response")} & only:
            continue
        merged.append(message)
        api_key = key[1] if isinstance(key, tuple) else None
        older = {n: f.versions[api_key] for n, f in facts.items() if api_key in f.versions}
        lines = message_lines(message, older, names, covered[key in in_clients], in_patches.get(key, {}))
        catalog.messages[message.name] = lines
    catalog.index = [_index_line(catalog.messages[name]) for name in sorted(catalog.messages)]
    return catalog


def _versions_in_patches(patches: list[Release]) -> dict[Key, dict[tuple[str, str], frozenset[int]]]:
    """By message, then by release and patch."""
    by_message: dict[Key, dict[tuple[str, str], frozenset[int]]] = {}
    for patch in patches:
        for _, text in definition_texts(patch):
            definition = parse(text)
            by_message.setdefault(_key(definition), {})[patch.name, patch.version] = valid_versions(definition)
    return by_message


def write(catalog: Catalog, data: Path = DATA) -> None:
    write_folder(data / "messages", catalog.messages)
    for stem in ("index", "releases", "errors"):
        (data / f"{stem}.txt").write_text("\n".join(getattr(catalog, stem)) + "\n")


def _key(definition: Definition) -> Key:
    """Requests and responses go by API key, since four of them were renamed; the rest by name."""
    if definition.kind in ("request", "response"):
        assert definition.api_key is not None
        return definition.kind, definition.api_key
    return definition.name


def _index_line(lines: list[str]) -> str:
    """NAME KIND KEY VERSIONS ALIASES: what a look-up by name or key needs before it opens a message's file."""
    words = [line.split() for line in lines]
    kind = next(w[1] for w in words if w[0] == "kind")
    key = next((w[1] for w in words if w[0] == "key"), "-")
    versions: set[int] = set()
    for word in words:
        if word[0] == "valid":
            for part in word[2].split(","):
                first, _, last = part.partition("-")
                versions |= set(range(int(first), int(last or first) + 1))
    aliases = [w[2] for w in words if w[0] == "was" and len(w) == 3]
    return " ".join([lines[0], kind, key, format_set(versions, newest=-1), ",".join(aliases) or "-"])


def _release_lines(releases: list[Release], source: tuple[str, Path] | None) -> list[str]:
    """RELEASE VERSION COVERAGE: `versions` before the definition files, `clients` where other jars are not out yet."""
    lines = []
    for release in releases:
        coverage = "versions"
        if release.has_definitions:
            alone = release.artifacts == ("kafka-clients",) and release_key(release.name) >= (2, 8)
            coverage = "clients" if alone else "all"
        lines.append(f"{release.name} {release.version} {coverage}")
    if source:
        lines.append(f"{source[0]} source all")
    return lines


def _error_lines(by_release: dict[str, tuple[ErrorFact, ...]]) -> list[str]:
    """CODE NAME RETRIABLE EXCEPTION RELEASE ALIASES, from the newest release that has the code."""
    newest: dict[int, ErrorFact] = {}
    first: dict[int, str] = {}
    aliases: dict[int, list[str]] = {}
    for release, errors in by_release.items():
        for error in errors:
            first.setdefault(error.code, release)
            before = newest.get(error.code)
            if before and before.name != error.name:
                aliases.setdefault(error.code, []).append(f"{before.name}")
            newest[error.code] = error
    return [
        f"{code} {newest[code].name} {'retriable' if newest[code].retriable else 'final'} {newest[code].exception}"
        f" {first[code]} {','.join(aliases.get(code, [])) or '-'}"
        for code in sorted(newest)
    ]
