"""What a program hands to `connect` and `call` in, the same in the client's own types out; UsageError says what was
handed over and what is wanted, before anything is sent."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kafkascope.client.settings import Address, Settings, parse_addresses
from kafkascope.client.targets import AnyBroker, Controller, Coordinator, Leader, Node, Target, parse_target
from kafkascope.errors import NotFoundError, UsageError
from kafkascope.schema.names import clip, find_api, suggest

# A year; a loop's clock takes no more than some hundred of them.
_LONGEST_SECONDS = 31_536_000


def settings_of(given: Any, overrides: Mapping[str, Any]) -> Settings:
    """A `Settings`, an `Address`, addresses as in `bootstrap.servers`, or several of either."""
    settings = given if isinstance(given, Settings) else Settings(_addresses(given))
    settings = replace(settings, **overrides)
    seconds_of(settings.timeout, "timeout")
    seconds_of(settings.connect_timeout, "connect_timeout")
    return settings


def _addresses(given: Any) -> tuple[Address, ...]:
    if isinstance(given, str):
        return parse_addresses(given)
    if isinstance(given, Address):
        return (given,)
    if isinstance(given, Iterable) and not isinstance(given, bytes | Mapping):
        found = tuple(dict.fromkeys(address for one in given for address in _address(one)))
        if found:
            return found
        raise UsageError("no address is given; say HOST:PORT")
    raise UsageError(f"connect takes addresses as text, Address or Settings, not {_kind(given)}")


def _address(given: Any) -> tuple[Address, ...]:
    if not isinstance(given, str | Address):
        raise UsageError(f"an address is text or an Address, not {_kind(given)}")
    return _addresses(given)


def seconds_of(given: Any, name: str) -> float:
    # `not <` finds nan too, with which no deadline would ever pass
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= _LONGEST_SECONDS:
        raise UsageError(f"{name} is {clip(repr(given))}; a number of seconds above 0 is wanted, a year at the most")
    return given


def api_of(given: Any) -> str:
    if not isinstance(given, str):
        raise UsageError(f'an API goes by its name, as "Metadata", not by {_kind(given)}')
    found = find_api(given)
    if found is None:
        raise NotFoundError(f"no API is called {clip(given) or 'by an empty name'}{suggest(given) if given else ''}")
    return found


def value_of(given: Any) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise UsageError(f"a request is a mapping of its fields, not {_kind(given)}")
    return given


def to_target(given: Any) -> Target | None:
    """A target, or its text."""
    if given is None or isinstance(given, AnyBroker | Node | Leader | Coordinator | Controller):
        return given
    if isinstance(given, str):
        return parse_target(given)
    raise UsageError(f'a target is a Node, Leader or the like, or text as "node:1", not {_kind(given)}')


def _kind(given: Any) -> str:
    name = type(given).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
