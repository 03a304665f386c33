"""The home page: every API by family, and what the newest release changed."""

from typing import Any

from kafkascope.explorer.page import Kind, Page
from kafkascope.schema.api_facts import families
from kafkascope.schema.catalog import apis, index, message
from kafkascope.schema.errors.error_codes import error_codes
from kafkascope.schema.history.release_changes import between, by_kind
from kafkascope.schema.releases import newest_release, releases
from kafkascope.schema.versions import format_versions


def make() -> Page:
    keys = {name: key for key, name in apis().items()}
    listed = [
        {"family": family, "apis": [_api(name, keys[name]) for name in names]} for family, names in families().items()
    ]
    all_releases = releases()
    facts: dict[str, Any] = {
        "counts": {"apis": len(apis()), "messages": len(index()), "errors": len(error_codes())},
        "oldest": all_releases[0].name,
        "newest": newest_release(),
        "releases": [release.name for release in reversed(all_releases)],
        "families": listed,
        "changes": _changes(all_releases[-2].name, all_releases[-1].name),
    }
    return Page("The Kafka wire", facts, "Every message of every Kafka release, byte by byte.")


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
