"""Looks up named values of coded fields: the meaning of their numbers, bits or words."""

import re
from dataclasses import dataclass
from functools import cache

from kafkascope.schema.files import lines
from kafkascope.schema.model import Message
from kafkascope.schema.versions import parse_versions

_VALUE = re.compile(r"(?P<head>.*?)(?: @(?:(?P<place>[A-Z][\w.]*):)?(?P<versions>[\d,+-]+))?(?: - (?P<meaning>.*))?$")


@dataclass(frozen=True, slots=True)
class NamedValue:
    """`value` is a number, a bit's position, or the word itself in a set of strings."""

    value: int | str
    name: str
    meaning: str | None
    versions: str | None
    only_at: str | None


@dataclass(frozen=True, slots=True)
class NamedValues:
    """`kind`: `set` (one of these), `bits` (a sum of bits, with `whole` values of their own), `strings`, or `special`
    (a plain number, some of whose values have a meaning of their own)."""

    name: str
    kind: str
    values: tuple[NamedValue, ...]
    whole: tuple[NamedValue, ...]
    condition: tuple[str, str] | None  # (sibling field, its value) to which it applies


@cache
def _by_place() -> dict[str, list[NamedValues]]:
    by_place: dict[str, list[NamedValues]] = {}
    kind = name = ""
    values: list[NamedValue] = []
    whole: list[NamedValue] = []
    for line in lines("values.txt"):
        if not line.startswith(" "):
            kind, name = line.split(" ")
            values, whole = [], []
            continue
        row = line.strip()
        if row.startswith("at "):
            place, _, condition = row[3:].partition(" when ")
            sibling, _, expected = condition.partition("=")
            named = NamedValues(name, kind, tuple(values), tuple(whole), (sibling, expected) if condition else None)
            by_place.setdefault(place, []).append(named)
        elif row.startswith("= "):
            whole.append(_value(row[2:], "set"))
        else:
            values.append(_value(row, kind))
    return by_place


def _value(row: str, kind: str) -> NamedValue:
    match = _VALUE.match(row)
    assert match is not None
    head = match["head"]
    if kind == "strings":
        return NamedValue(head, head, match["meaning"], match["versions"], match["place"])
    number, _, name = head.partition(" ")
    return NamedValue(int(number), name, match["meaning"], match["versions"], match["place"])


def named_values(message: Message, path: tuple[str, ...], version: int | None = None) -> list[NamedValues]:
    """The meaning of the values at this place, restricted to a version."""
    place = ".".join((message.name, *path))
    narrowed = []
    for named in _by_place().get(place, []):
        kept = tuple(value for value in named.values if _holds(value, place, version))
        narrowed.append(NamedValues(named.name, named.kind, kept, named.whole, named.condition))
    return narrowed


def _holds(value: NamedValue, place: str, version: int | None) -> bool:
    if version is None or value.versions is None or (value.only_at and value.only_at != place):
        return True
    return version in parse_versions(value.versions)


def meaning(named: list[NamedValues], value: object, siblings: dict[str, object] | None = None) -> str | None:
    """A short name for one decoded value: `Accept`, `READ|WRITE`, `STALE_TOPOLOGY`."""
    for item in named:
        if item.condition and str((siblings or {}).get(_camel(item.condition[0]))) != item.condition[1]:
            continue
        if item.kind == "strings":
            return None  # the word is its own meaning
        exact = next((v.name for v in (*item.whole, *item.values) if v.value == value and item.kind != "bits"), None)
        if exact:
            return exact
        if item.kind == "bits" and isinstance(value, int):
            whole = next((v.name for v in item.whole if v.value == value), None)
            names = [v.name for v in item.values if isinstance(v.value, int) and value >> v.value & 1]
            return whole or "|".join(names) or None
    return None


def _camel(name: str) -> str:
    return name[:1].lower() + name[1:]


def all_places() -> set[str]:
    return set(_by_place())
