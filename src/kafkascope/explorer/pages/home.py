"""The home page: every API by family, and what the newest release changed."""

from typing import Any

from kafkascope.explorer.facts.example import example_facts
from kafkascope.explorer.page import Kind, Page
from kafkascope.schema.api_facts import families
from kafkascope.schema.catalog import apis, index, message
from kafkascope.schema.errors.error_codes import error_codes
from kafkascope.schema.history.release_changes import between, by_kind
from kafkascope.schema.layouts.layout import layout
from kafkascope.schema.releases import newest_release, releases
from kafkascope.schema.versions import format_versions

# Short enough for the page, long enough for a string, a number and a length.
_EXAMPLE = ("FindCoordinatorRequest", 1)


def make(verdict: dict[str, Any] | None = None) -> Page:
    """`verdict` is the lake's, if the server has one."""
    keys = {name: key for key, name in apis().items()}
    listed = [
        {"family": family, "apis": [_api(name, keys[name]) for name in names]} for family, names in families().items()
    ]
    all_releases = releases()
    facts: dict[str, Any] = {
        "counts": {"apis": len(apis()), "messages": len(index()), "errors": len(error_codes())},
        "oldest": all_releases[0].name,
        "newest": newest_release(),
        "families": listed,
        "changes": _changes(all_releases[-2].name, all_releases[-1].name),
        "example": _example(),
        "verdict": verdict,
    }
    about = "A reference, a decoder and traffic analysis for the Kafka protocol: every message of every release."
    return Page("The Kafka wire", facts, about)


def _example() -> dict[str, Any]:
    name, version = _EXAMPLE
    shown = example_facts(layout(name, version))
    size = len(shown["hex"]) // 2
    return {"message": name, "version": version, "json": shown["json"], "bytes": shown["bytes"], "size": size}


def _api(name: str, key: int) -> dict[str, Any]:
    request = message(f"{name}Request")
    served = request.versions_in(newest_release())
    versions = [version for version in request.all_versions() if served is not None and version in served]
    return {"name": name, "key": key, "versions": format_versions(versions) or None}


def _changes(old: str, new: str) -> dict[str, Any]:
    difference = between(old, new)
    rows = [
        {"message": change.name, "what": change.what, "before": change.before, "after": change.after}
        for change in by_kind(difference.messages)["request"]
    ]
    errors = [{"code": error.code, "name": error.name} for error in difference.errors]
    return {"since": old, "messages": rows, "errors": errors}


KIND = Kind("home", "index.html", "index.html", make, lambda: ({},))
