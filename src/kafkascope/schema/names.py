"""What people type in, a message's present name out: any case, earlier names, and a suggestion for near misses."""

from functools import cache

from kafkascope.errors import NotFoundError, UsageError
from kafkascope.schema.catalog import apis, index

_LONGEST_ECHO = 60


@cache
def _by_lower_name() -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in index().values():
        for name in (*entry.aliases, entry.name):
            found[name.lower()] = entry.name
    return found


@cache
def _apis_by_lower_name() -> dict[str, str]:
    found = {name.lower(): name for name in apis().values()}
    for entry in index().values():
        if entry.kind == "request":
            for alias in entry.aliases:
                found.setdefault(alias.removesuffix("Request").lower(), entry.name.removesuffix("Request"))
    return found


def clip(text: str) -> str:
    """What someone typed, short enough for one line of an error."""
    return text if len(text) <= _LONGEST_ECHO else f"{text[:_LONGEST_ECHO]}…"


def parse_number(text: str) -> int | None:
    """A small whole number; not what Python alone would take for one (² and 5,000 digits)."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None


def find(name: str) -> str:
    """A message by its name or an earlier one; NotFoundError suggests."""
    if name in index():
        return name
    found = _by_lower_name().get(_plain(name))
    if found:
        return found
    api = _apis_by_lower_name().get(_plain(name))
    if api:
        raise UsageError(f"{name} is an API; say {api}Request or {api}Response")
    raise NotFoundError(f"no message is called {clip(name)}{suggest(name)}")


def find_api(name: str) -> str | None:
    """An API by name or key: `ShareFetch`, `sharefetch`, `78`."""
    number = parse_number(name)
    if number is not None:
        return apis().get(number)
    return _apis_by_lower_name().get(_plain(name))


def suggest(name: str, extra: tuple[str, ...] = ()) -> str:
    """`; did you mean X?`, or where to look when nothing is near."""
    near = close_names(name, extra)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return "; `kafkascope apis` lists them"


def close_names(name: str, extra: tuple[str, ...] = (), most: int = 3) -> list[str]:
    # difflib costs 10 ms to import: only a mistake pays for it.
    from difflib import get_close_matches

    known = {**_by_lower_name(), **_apis_by_lower_name(), **{item.lower(): item for item in extra}}
    near = get_close_matches(_plain(name), known, n=most, cutoff=0.75)
    return list(dict.fromkeys(known[item] for item in near))


def _plain(name: str) -> str:
    """`share_fetch`, `SHARE_FETCH` and `share-fetch` are ShareFetch."""
    return name.lower().replace("_", "").replace("-", "")
