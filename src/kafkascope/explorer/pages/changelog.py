"""The changelog of an API or message: every version, newest first, with what changed on the wire."""

from collections.abc import Iterator
from typing import Any

from kafkascope.explorer.facts.changes import all_changes, change_facts
from kafkascope.explorer.page import Kind, Page
from kafkascope.schema.catalog import apis, index, message
from kafkascope.schema.export import span_text
from kafkascope.schema.history.versions_of import VersionEntry, history
from kafkascope.schema.targets import Target, parse_target
from kafkascope.schema.versions import format_versions


def make(name: str) -> Page:
    target = named(name)
    entries = history(target.messages)
    first = message(target.messages[0])
    title = target.api or first.name
    facts = {
        "name": title,
        "api": first.api,
        "messages": list(target.messages),
        "aliases": [{"name": alias, "lastRelease": last} for alias, last in first.was],
        "versions": [_version(entry, title) for entry in entries],
        "later": _later(entries),
    }
    return Page(f"{title}: changelog", facts, f"Every version of {title}, and what changed on the wire.")


def named(name: str) -> Target:
    """An API or message without a version: addresses have no `ShareFetch:2`."""
    return parse_target(name.replace(":", " "))


def _version(entry: VersionEntry, title: str) -> dict[str, Any]:
    return {
        "version": entry.version,
        "older": entry.older,
        "diff": None if entry.older is None else {"name": title, "a": entry.older, "b": entry.version},
        "releases": span_text(list(entry.spans)),
        "since": entry.spans[0].first,
        "kips": list(entry.kips),
        "unstable": [str(span) for span in entry.unstable],
        "deprecated": [str(span) for span in entry.deprecated],
        "changes": [
            {"message": name, "changes": all_changes(changes)} for name, changes in entry.changes.items() if changes
        ],
    }


def _later(entries: list[VersionEntry]) -> list[dict[str, Any]]:
    """What a release changed under existing version numbers, each change once with its versions."""
    versions_by_change: dict[tuple[str, str, Any], list[int]] = {}
    for entry in entries:
        for name, release, change in entry.later:
            versions_by_change.setdefault((release, name, change), []).append(entry.version)
    return [
        {"release": release, "message": name, "versions": format_versions(versions), **change_facts(change)}
        for (release, name, change), versions in versions_by_change.items()
    ]


def every() -> Iterator[dict[str, str]]:
    for api in apis().values():
        yield {"name": api}
    for name, entry in index().items():
        if entry.kind not in ("request", "response"):
            yield {"name": name}


KIND = Kind("changelog", "changelog/{name}.html", "changelog.html", make, every)
