"""Checks and converts the arguments of `connect` and `call`, before anything is sent."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kafkascope.client.settings import Address, Settings, parse_addresses
from kafkascope.client.targets import AnyBroker, Controller, Coordinator, Leader, Node, Target, parse_target
from kafkascope.errors import NotFoundError, UsageError
from kafkascope.schema.names import clip, find_api, suggest

# A year; the clock of a loop can't count many hundreds of them.
_LONGEST_SECONDS = 31_536_000


def settings_of(target: Any, overrides: Mapping[str, Any]) -> Settings:
    """A `Settings`, an `Address`, addresses as in `bootstrap.servers`, or several of either."""
    settings = target if isinstance(target, Settings) else Settings(_addresses(target))
    settings = replace(settings, **overrides)
    seconds_of(settings.timeout, "timeout")
    seconds_of(settings.connect_timeout, "connect_timeout")
    return settings


def _addresses(value: Any) -> tuple[Address, ...]:
    if isinstance(value, str):
        return parse_addresses(value)
    if isinstance(value, Address):
        return (value,)
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
        addresses = tuple(dict.fromkeys(address for item in value for address in _address(item)))
        if addresses:
            return addresses
        raise UsageError("no address is given; write HOST:PORT")
    raise UsageError(f"connect takes addresses as text, Address or Settings, not {_kind(value)}")


def _address(value: Any) -> tuple[Address, ...]:
    if not isinstance(value, str | Address):
        raise UsageError(f"an address is text or an Address, not {_kind(value)}")
    return _addresses(value)


def seconds_of(value: Any, name: str) -> float:
    # `not <` is true for nan too, with which no deadline would ever pass
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _LONGEST_SECONDS:
        raise UsageError(f"{name} is {clip(repr(value))}; it must be a number of seconds above 0, at most a year")
    return value


def api_of(value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f'an API is text, as in "Metadata", not {_kind(value)}')
    api = find_api(value)
    if api is None:
        raise NotFoundError(f"unknown API {clip(value) or '(an empty name)'}{suggest(value) if value else ''}")
    return api


def value_of(value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UsageError(f"a request is a mapping of its fields, not {_kind(value)}")
    return value


def to_target(value: Any) -> Target | None:
    """Accepts a target, or its text."""
    if value is None or isinstance(value, AnyBroker | Node | Leader | Coordinator | Controller):
        return value
    if isinstance(value, str):
        return parse_target(value)
    raise UsageError(f'a target is a Node, Leader or another target, or text as in "node:1", not {_kind(value)}')


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
