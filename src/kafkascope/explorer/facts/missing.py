"""Suggests pages for an address that doesn't exist."""

import re
from collections.abc import Collection
from typing import Any
from urllib.parse import unquote

from kafkascope.explorer.facts.field_places import near_fields
from kafkascope.explorer.facts.manual import manual_pages
from kafkascope.formatting import close_names
from kafkascope.schema.catalog import apis, index, message
from kafkascope.schema.errors.error_codes import by_name
from kafkascope.schema.names import RECORD_KINDS, clip, describe_kind, kind_of, names_like, suggest
from kafkascope.schema.releases import releases

# No name is longer, and comparing long words takes time.
_LONGEST = 100
_MOST = 5
# No address has more parts, and each part is compared with every name.
_MOST_PARTS = 4


def near(path: str) -> list[dict[str, Any]]:
    """Suggestions with their text, kind of page and parameters."""
    names = [unquote(part) for part in re.sub(r"\.(html|json)$", "", path).split("/") if part][:_MOST_PARTS]
    suggestions: list[dict[str, Any]] = []
    if names[:1] == ["field"]:
        suggestions += [_field(name) for typed in names[1:2] if len(typed) <= _LONGEST for name in near_fields(typed)]
    if names[:1] == ["docs"]:
        suggestions += [_manual(name) for typed in names[1:2] if len(typed) <= _LONGEST for name in _pages_like(typed)]
    for name in names:
        if len(name) <= _LONGEST:
            suggestions += [item for item in _like(name) if item not in suggestions]
    return suggestions[:_MOST]


def _like(name: str) -> list[dict[str, Any]]:
    if name in index():
        return [_message(name)]
    suggestions = [_api(near) if near in apis().values() else _message(near) for near in names_like(name)]
    errors = close_names(name.upper(), list(by_name()), most=2, cutoff=0.7)
    suggestions += [
        {"text": by_name()[e].name, "kind": "error", "parameters": {"name": by_name()[e].name}} for e in errors
    ]
    release_names = [release.name for release in releases()]
    close = close_names(name, release_names, most=2, cutoff=0.75) if name[:1].isdigit() and "." in name else []
    suggestions += [{"text": f"Kafka {r}", "kind": "release", "parameters": {"release": r}} for r in close]
    return suggestions


def _pages_like(name: str) -> list[str]:
    return close_names(name.lower(), list(manual_pages()), most=3)


def not_called(noun: str, name: str, kinds: Collection[str]) -> str:
    """Why the page doesn't exist: the name is of another kind, with the address of its page, or is unknown."""
    other = kind_of(name)
    if other and other[1] not in kinds and other[0] == name:
        newest = None if other[1] == "API" else message(name).all_versions()[-1]
        folder = "api" if newest is None else "record" if other[1] in RECORD_KINDS else "message"
        file = name if newest is None else f"{name}/{newest}"
        return f"{name} is {describe_kind(*other)}: /{folder}/{file}.html"
    return f"unknown {noun} {clip(name)}{suggest(name, kinds, 'the search finds names by a part of them')}"


def _field(name: str) -> dict[str, Any]:
    return {"text": name, "kind": "field", "parameters": {"name": name}}


def _manual(name: str) -> dict[str, Any]:
    return {"text": manual_pages()[name].title, "kind": "manual_page", "parameters": {"name": name}}


def _api(name: str) -> dict[str, Any]:
    return {"text": name, "kind": "api", "parameters": {"name": name}}


def _message(name: str) -> dict[str, Any]:
    from kafkascope.explorer.address import message_page

    newest = message(name).all_versions()[-1]
    kind, parameters = message_page(name, newest)
    return {"text": f"{name} v{newest}", "kind": kind, "parameters": parameters}
