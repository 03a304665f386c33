"""Resolves message and API names as people type them: any case, earlier names, and suggestions for near misses."""

from collections.abc import Collection
from fnmatch import fnmatchcase
from functools import cache

from kafkascope.errors import NotFoundError, UsageError
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
    """What someone typed, short enough for one line of an error."""
    return text if len(text) <= _LONGEST_ECHO else f"{text[:_LONGEST_ECHO]}…"


def called(name: str) -> str:
    """The same of a name that nothing has; an empty one must show too."""
    return clip(name) or "''"


def parse_number(text: str) -> int | None:
    """A small whole number; not what Python alone would take for one (² and 5,000 digits)."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None


def find(name: str) -> str:
    """A message by its name or an earlier one; NotFoundError suggests."""
    if not isinstance(name, str):
        raise UsageError(f"a message goes by its name; this is {type(name).__name__}")
    if name in index():
        return name
    present = _by_lower_name().get(_plain(name))
    if present:
        return present
    api = _apis_by_lower_name().get(_plain(name))
    if api:
        raise UsageError(f"{name} is an API; say {api}Request or {api}Response")
    raise NotFoundError(f"no message is called {called(name)}{suggest(name, ANY)}")


def find_api(name: str) -> str | None:
    """An API by name or key: `ShareFetch`, `sharefetch`, `78`."""
    number = parse_number(name)
    if number is not None:
        return apis().get(number)
    return _apis_by_lower_name().get(_plain(name))


def suggest(name: str, kinds: Collection[str] = API_KINDS, nothing: str = "`kafkascope apis` lists them") -> str:
    """What to say behind the news that nothing of these kinds has the name: what it is instead, what may have been
    meant, or `nothing` when nothing is near."""
    other = kind_of(name)
    if other and other[1] not in kinds:
        return f"; it is {describe_kind(*other)}"
    near = close_names(name, kinds)
    return f"; did you mean {' or '.join(near)}?" if near else f"; {nothing}"


def kind_of(name: str) -> tuple[str, str] | None:
    """The present name and the kind of what goes by this one, in any spelling."""
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


def close_names(name: str, kinds: Collection[str] = ANY, most: int = 3) -> list[str]:
    # difflib costs 10 ms to import: only a mistake pays for it.
    from difflib import get_close_matches

    candidates = {lower: present for lower, present in _by_lower_name().items() if index()[present].kind in kinds}
    if "API" in kinds:
        candidates |= _apis_by_lower_name()
    near = get_close_matches(_plain(name), candidates, n=most, cutoff=0.75)
    return list(dict.fromkeys(candidates[item] for item in near))


def matches(text: str, pattern: str) -> bool:
    """`*` and `?` alone are special: names may have brackets, and addresses of IPv6 do."""
    return fnmatchcase(text, pattern.replace("[", "[[]"))


def _plain(name: str) -> str:
    """`share_fetch`, `SHARE_FETCH` and `share-fetch` are ShareFetch."""
    return name.lower().replace("_", "").replace("-", "")
