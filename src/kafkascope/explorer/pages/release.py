"""The page of a Kafka release: what it added, changed and removed since the release before."""

from collections.abc import Iterator
from typing import Any

from kafkascope.errors import NotFoundError, UsageError
from kafkascope.explorer.facts.changes import all_changes, message_change_facts
from kafkascope.explorer.page import Kind, Page
from kafkascope.schema.api_facts import family_of, kips_of_version
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.export import error_json
from kafkascope.schema.history.compare import compare_layouts, versions_in
from kafkascope.schema.history.release_changes import KIND_TITLES, between, by_kind, coverage_remarks
from kafkascope.schema.layouts.layout import layout
from kafkascope.schema.model import Message
from kafkascope.schema.names import clip
from kafkascope.schema.prose import paragraphs
from kafkascope.schema.releases import check_release, newest_release, next_release, release_order, releases
from kafkascope.schema.versions import format_versions


def make(release: str) -> Page:
    name = known_release(release)
    at = release_order()[name]
    entry = releases()[at]
    previous = releases()[at - 1].name if at else None
    facts: dict[str, Any] = {
        "release": name,
        "readFrom": entry.version,
        "coverage": entry.coverage,
        "remarks": coverage_remarks(name, *([previous] if previous else [])),
        "previous": previous,
        "next": next_release(name),
        "newest": newest_release(),
        "releases": [item.name for item in releases()],
        "apis": _apis(name, previous),
    }
    facts |= _records(name, previous)
    return Page(f"Kafka {name}", facts, f"What Kafka {name} added, changed and removed on the wire.")


def known_release(text: str) -> str:
    """A patch release means its release. A release that the catalog lacks isn't found."""
    try:
        return check_release(text)
    except UsageError:
        oldest, *_, newest = releases()
        raise NotFoundError(
            f"unknown Kafka release {clip(text)}; the catalog knows {oldest.name} to {newest.name}"
        ) from None


def _apis(name: str, previous: str | None) -> list[dict[str, Any]]:
    """APIs that were added or removed, or that gained or lost versions, with the fields of new versions."""
    rows = []
    for key, api in apis().items():
        request = message(f"{api}Request")
        before, after = versions_in(request, previous) if previous else [], versions_in(request, name)
        unstable = [version for span, version in request.unstable if name in span]
        stabilised = [
            version
            for span, version in request.unstable
            if previous and previous in span and name not in span and version in after
        ]
        came, went = sorted(set(after) - set(before)), sorted(set(before) - set(after))
        if not came and not went and not stabilised:
            continue
        rows.append(
            {
                "api": api,
                "key": key,
                "family": family_of(api),
                "about": _first_sentence(request),
                "what": "added" if not before else "removed" if not after else "versions",
                "came": [_came(api, version, version in unstable, bool(before)) for version in came],
                "went": went,
                "wentText": format_versions(went),
                "stabilised": stabilised,
                "versions": after,
            }
        )
    return rows


def _first_sentence(definition: Message) -> str:
    prose = paragraphs(definition)
    return prose[0].partition(". ")[0].rstrip(".") + "." if prose else ""


def _came(api: str, version: int, unstable: bool, compared: bool) -> dict[str, Any]:
    """`compared` is false for a new API, whose first versions aren't compared."""
    request = message(f"{api}Request")
    older = version - 1 if compared and version - 1 in request.all_versions() else None
    names = (f"{api}Request", f"{api}Response")
    return {
        "version": version,
        "older": older,
        "unstable": unstable,
        "kips": kips_of_version(request, version),
        "changes": [
            {"message": name, "changes": all_changes(changes)}
            for name in names
            if older is not None and (changes := compare_layouts(layout(name, older), layout(name, version)))
        ],
    }


def _records(name: str, previous: str | None) -> dict[str, Any]:
    """Messages that aren't APIs, layouts that changed under an existing number, names, and error codes."""
    if previous is None:
        return {"records": [], "layouts": [], "renamed": [], "errors": []}
    difference = between(previous, name)
    groups = by_kind(difference.messages)
    return {
        "records": [
            {"kind": kind, "title": KIND_TITLES[kind], "messages": [message_change_facts(change) for change in rows]}
            for kind, rows in groups.items()
            if kind != "request" and rows
        ],
        "layouts": [message_change_facts(change) for change in groups["request"] if change.changes],
        "renamed": [{"before": before, "after": after} for before, after in difference.renamed],
        "errors": [error_json(error) for error in difference.errors],
    }


def every() -> Iterator[dict[str, str]]:
    for release in releases():
        yield {"release": release.name}


KIND = Kind("release", "release/{release}.html", "release.html", make, every)
