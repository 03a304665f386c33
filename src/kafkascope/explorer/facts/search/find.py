"""Searches the entries, best match first. static/find.js does the same in the browser; a test compares them."""

import re

from kafkascope.explorer.facts.search.entries import ENTRY_KINDS, SearchEntry, entries

MOST_RESULTS = 24
# Kinds whose names people mistype.
_NAMED = ("api", "page", "error", "message", "record")
# No name is longer, and comparing long words takes time.
_LONGEST_TYPO = 60


def search(query: str) -> list[SearchEntry]:
    """`fetch v12` and `FetchRequest:12` name a version. All words of `group describe` must match. If nothing matches,
    names that differ by a letter or two do."""
    words = [word for word in re.split(r"[\s:]+", query.lower()) if re.search(r"[0-9a-z_]", word)]
    if not words:
        return []
    versions = _versions(words)
    listed = {entry.address for entry in versions}
    results = [*versions, *(entry for entry in _ranked(words) if entry.address not in listed)]
    return (results or _near("".join(_named_by(words))))[:MOST_RESULTS]


def _versions(words: list[str]) -> list[SearchEntry]:
    """Pages of one version, if the last word is a version."""
    name = _named_by(words)
    if name == words:
        return []
    version = int(words[-1].removeprefix("v"))
    entries = [entry for entry in _ranked(name) if version in entry.versions]
    return [
        entry._replace(
            text=f"{entry.text} v{version}",
            about=entry.about.partition(" ")[0],
            address=f"{entry.kind}/{entry.text}/{version}.html",
        )
        for entry in entries
    ]


def _named_by(words: list[str]) -> list[str]:
    """The words without the version at their end."""
    return words[:-1] if len(words) > 1 and re.fullmatch(r"v?[0-9]{1,3}", words[-1]) else words


def _ranked(words: list[str]) -> list[SearchEntry]:
    ranked = []
    for order, entry in enumerate(entries()):
        rank = _rank(entry, words)
        if rank is not None:
            ranked.append(((rank, ENTRY_KINDS.index(entry.kind), _depth(entry), order), entry))
    ranked.sort(key=lambda item: item[0])
    return [entry for _, entry in ranked]


def _depth(entry: SearchEntry) -> int:
    """Fields at the top of a message come first, and fields of requests and responses before those of records."""
    return 2 * entry.about.count(".") + entry.address.startswith("record/") if entry.kind == "field" else 0


def _rank(entry: SearchEntry, words: list[str]) -> int | None:
    text = entry.text.lower()
    names = (text, *(alias.lower() for alias in entry.also))
    joined = _bare("".join(words))
    if joined and any(_bare(name) == joined for name in names):
        return 0
    whole = " ".join((*names, entry.about.lower()))
    humps = _humps(entry.text)
    if not all(word in whole or humps.startswith(word) for word in words):
        return None
    first = words[0]
    if any(name.startswith(first) for name in names):
        return 1
    if humps.startswith(first):
        return 2
    if first in text:
        return 3
    # One word that only a message's name contains means the message, not each of its fields.
    return None if entry.kind == "field" and len(words) == 1 else 4


def _bare(name: str) -> str:
    """`share fetch`, `share-fetch` and `ShareFetch` are one name; the sign of -1 counts."""
    return re.sub(r"(?<=.)[ _-]", "", name)


def _humps(text: str) -> str:
    """`sf` of ShareFetch, `irs` of INVALID_RECORD_STATE."""
    if "_" in text:
        return "".join(part[:1] for part in text.split("_")).lower()
    return "".join(letter for letter in text if letter.isupper()).lower()


def _near(word: str) -> list[SearchEntry]:
    most = 0 if len(word) < 4 or len(word) > _LONGEST_TYPO else 1 if len(word) < 6 else 2
    if not most:
        return []
    near = []
    for order, entry in enumerate(entries()):
        if entry.kind in _NAMED:
            distance = _distance(word, entry.text.lower(), most)
            if distance <= most:
                near.append(((distance, ENTRY_KINDS.index(entry.kind), order), entry))
    near.sort(key=lambda item: item[0])
    return [entry for _, entry in near]


def _distance(a: str, b: str, most: int) -> int:
    """Number of letters to insert, drop, change or swap; any number above `most` if it's more."""
    if abs(len(a) - len(b)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        above, row = row, [i]
        for j, other in enumerate(b, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == other:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before = above
        if min(row) > most:
            return most + 1
    return row[-1]
