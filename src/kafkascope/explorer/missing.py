"""An address that leads nowhere in, pages that may have been meant out."""

import re
from typing import Any
from urllib.parse import unquote

from kafkascope.schema.catalog import apis, index, message
from kafkascope.schema.error_codes import by_name
from kafkascope.schema.names import close_names
from kafkascope.schema.releases import releases

# A longer word is no name of anything, and comparing it takes time.
_LONGEST = 100
_MOST = 5


def near(path: str) -> list[dict[str, Any]]:
    """Each with its text, its kind of page and that one's parameters."""
    names = [unquote(part) for part in re.sub(r"\.(html|json)$", "", path).split("/") if part]
    found: list[dict[str, Any]] = []
    for name in names:
        if len(name) <= _LONGEST:
            found += [item for item in _like(name) if item not in found]
    return found[:_MOST]


def _like(name: str) -> list[dict[str, Any]]:
    from difflib import get_close_matches

    if name in index():
        return [_message(name)]
    found = [_api(near) if near in apis().values() else _message(near) for near in close_names(name)]
    errors = get_close_matches(name.upper(), by_name(), n=2, cutoff=0.7)
    found += [{"text": by_name()[e].name, "kind": "error", "parameters": {"name": by_name()[e].name}} for e in errors]
    known = [release.name for release in releases()]
    close = get_close_matches(name, known, n=2, cutoff=0.75) if name[:1].isdigit() and "." in name else []
    found += [{"text": f"Kafka {r}", "kind": "release", "parameters": {"release": r}} for r in close]
    return found


def _api(name: str) -> dict[str, Any]:
    return {"text": name, "kind": "api", "parameters": {"name": name}}


def _message(name: str) -> dict[str, Any]:
    from kafkascope.explorer.render import message_page

    newest = message(name).all_versions()[-1]
    kind, parameters = message_page(name, newest)
    return {"text": f"{name} v{newest}", "kind": kind, "parameters": parameters}
