"""Resolves message and API names as people type them: any case, earlier names, and suggestions for near misses."""

from collections.abc import Collection
from fnmatch import fnmatchcase
from functools import cache

from kafkascope.errors import NotFoundError, UsageError
from kafkascope.formatting import close_names, did_you_mean
from kafkascope.schema.catalog import apis, index

_LONGEST_ECHO = 60
# Kinds of names; those of messages are the catalog's own.
API_KINDS = frozenset({"API"})
RECORD_KINDS = frozenset({"key", "value", "metadata", "data"})
MESSAGE_KINDS = frozenset({"request", "response", "header"}) | RECORD_KINDS
ANY = API_KINDS | MESSAGE_KINDS


@cache
def _by_lower_name() -> dict[str, str]:
    names: dict[str, str] = {}
    for entry in index().values():
        for name in (*entry.aliases, entry.name):
            names[name.lower()] = entry.name
    return names


@cache
def _apis_by_lower_name() -> dict[str, str]:
    names = {name.lower(): name for name in apis().values()}
    for entry in index().values():
        if entry.kind == "request":
            for alias in entry.aliases:
                names.setdefault(alias.removesuffix("Request").lower(), entry.name.removesuffix("Request"))
    return names


def clip(text: str) -> str:
    """User input, short enough for one line of an error."""
    return text if len(text) <= _LONGEST_ECHO else f"{text[:_LONGEST_ECHO]}…"


def called(name: str) -> str:
    """The same for an unknown name; an empty one must be visible too."""
    return clip(name) or "''"


def parse_number(text: str) -> int | None:
    """A small integer; rejects what only Python takes for one (² and 5,000 digits)."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None


def find(name: str) -> str:
    """A message by its current or an earlier name; NotFoundError has suggestions."""
    if not isinstance(name, str):
        raise UsageError(f"the name of a message must be text, not {type(name).__name__}")
    if name in index():
        return name
    present = _by_lower_name().get(_plain(name))
    if present:
        return present
    api = _apis_by_lower_name().get(_plain(name))
    if api:
        raise UsageError(f"{name} is an API; use {api}Request or {api}Response")
    raise NotFoundError(f"unknown message {called(name)}{suggest(name, ANY)}")


def find_api(name: str) -> str | None:
    """An API by name or key: `ShareFetch`, `sharefetch`, `78`."""
    number = parse_number(name)
    if number is not None:
        return apis().get(number)
    return _apis_by_lower_name().get(_plain(name))


def suggest(name: str, kinds: Collection[str] = API_KINDS, nothing: str = "`kafkascope apis` lists them") -> str:
    """The end of an error about an unknown name of these kinds: what it is instead, similar names, or `nothing` if
    there are none."""
    other = kind_of(name)
    if other and other[1] not in kinds:
        return f"; it is {describe_kind(*other)}"
    return did_you_mean(names_like(name, kinds), nothing)


def kind_of(name: str) -> tuple[str, str] | None:
    """The current name and the kind of what has this name, in any spelling."""
    api = _apis_by_lower_name().get(_plain(name))
    if api:
        return api, "API"
    present = _by_lower_name().get(_plain(name))
    return (present, index()[present].kind) if present else None


def describe_kind(name: str, kind: str) -> str:
    """`a request of ShareFetch`, `a record`, `an API`."""
    if kind in ("request", "response"):
        return f"a {kind} of {name.removesuffix(kind.capitalize())}"
    return "a record" if kind in RECORD_KINDS else "an API" if kind == "API" else f"a {kind}"


def names_like(name: str, kinds: Collection[str] = ANY) -> list[str]:
    candidates = {lower: present for lower, present in _by_lower_name().items() if index()[present].kind in kinds}
    if "API" in kinds:
        candidates |= _apis_by_lower_name()
    return close_names(_plain(name), candidates, most=3, cutoff=0.75)


def matches(text: str, pattern: str) -> bool:
    """Only `*` and `?` are special: names and IPv6 addresses may contain brackets."""
    return fnmatchcase(text, pattern.replace("[", "[[]"))


def _plain(name: str) -> str:
    """`share_fetch`, `SHARE_FETCH` and `share-fetch` are ShareFetch."""
    return name.lower().replace("_", "").replace("-", "")
