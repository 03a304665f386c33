"""One message at one version: name and version in, its page out; `2@4.3` is version 2 as Kafka 4.3 lays it out."""

from collections.abc import Iterator
from typing import Any

from kafkascope.errors import NotFoundError, UsageError
from kafkascope.explorer.facts.example import example_facts
from kafkascope.explorer.facts.fields import tree
from kafkascope.explorer.facts.missing import not_called
from kafkascope.explorer.facts.wire import wire_facts
from kafkascope.explorer.page import Kind, Page
from kafkascope.schema.api_facts import kips_of
from kafkascope.schema.catalog import index, message
from kafkascope.schema.errors.message_errors import error_fields, errors_of
from kafkascope.schema.export import span_text
from kafkascope.schema.layouts.layout import Layout, describe_versions, layout
from kafkascope.schema.layouts.typed_json import typed_json
from kafkascope.schema.model import Message
from kafkascope.schema.names import clip, parse_number
from kafkascope.schema.prose import paragraphs
from kafkascope.schema.releases import check_release

KINDS_HERE = ("request", "response", "header")


def make(name: str, version: str) -> Page:
    found = find_layout(name, version, KINDS_HERE)
    return message_page(found)


def message_page(found: Layout) -> Page:
    """Of any message, records too."""
    in_release = f" as Kafka {found.release} has it" if found.release else ""
    said = paragraphs(found.message)
    about = said[0].partition(". ")[0].rstrip(".") + "." if said else ""
    return Page(f"{found.message.name} v{found.version}{in_release}", message_facts(found), about)


def find_layout(name: str, version: str, kinds: tuple[str, ...]) -> Layout:
    """`NotFoundError` or `UsageError` where there is no such message, version or release."""
    if name not in index() or index()[name].kind not in kinds:
        raise NotFoundError(not_called("record" if "data" in kinds else "message", name, kinds))
    number, _, release = version.partition("@")
    parsed = parse_number(number)
    if parsed is None or parsed < 0:
        raise UsageError(f"'{clip(version)}' is no version; {describe_versions(message(name))}")
    known = check_release(release) if release else None
    written = f"{parsed}@{known}" if known else str(parsed)
    if written != version:
        raise UsageError(f"'{clip(version)}' is written {written}")  # a page has one address
    return layout(name, parsed, known)


def message_facts(found: Layout) -> dict[str, Any]:
    known, version = found.message, found.version
    return {
        "message": known.name,
        "kind": known.kind,
        "api": known.api,
        "key": known.key,
        "version": version,
        "release": found.release,
        "calledThen": known.name_in(found.release) if known.name_in(found.release) != known.name else None,
        "releases": [str(span) for span in known.releases_of(version)],
        "flexible": found.flexible,
        "unstableIn": [str(span) for span, unstable in known.unstable if unstable == version],
        "deprecatedIn": [str(span) for span, versions in known.deprecated if version in versions],
        "aliases": [{"name": name, "lastRelease": last} for name, last in known.was],
        "versions": [{"version": v, "releases": span_text(known.releases_of(v))} for v in known.all_versions()],
        "previous": version - 1 if version - 1 in known.all_versions() and not found.release else None,
        "otherLayouts": other_layouts(known, version),
        "prose": list(paragraphs(known)),
        "kips": kips_of(known, version),
        "errors": errors_by_field(known, version),
        "wire": wire_facts(found),
        "fields": tree(found),
        "schema": typed_json(found),
        "example": example_facts(found),
    }


def other_layouts(known: Message, version: int) -> list[dict[str, str]]:
    """Releases that lay the version out otherwise; `release` is the last of them that has it."""
    return [
        {"releases": str(block.releases), "release": block.releases.last or block.releases.first}
        for block in known.blocks
        if block.releases and version in block.versions
    ]


def errors_by_field(known: Message, version: int) -> list[dict[str, Any]]:
    """`field` is the place in the response that carries the error, None where no source tells."""
    if not known.api:
        return []
    found = errors_of(known, version)
    places: list[str | None] = [*error_fields(message(f"{known.api}Response"), version), None]
    grouped = []
    for place in places:
        here = [item for item in found if (place in item.fields if place else not item.fields)]
        if here:
            listed = [
                {"code": i.error.code, "name": i.error.name, "retriable": i.error.retriable, "origin": i.origin,
                 "where": i.where}
                for i in here
            ]  # fmt: skip
            grouped.append({"field": place, "errors": listed})
    return grouped


def every() -> Iterator[dict[str, str]]:
    return every_of(KINDS_HERE)


def every_of(kinds: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """All versions of all messages of these kinds, and the layouts that some releases have of their own."""
    for name, entry in index().items():
        if entry.kind in kinds:
            known = message(name)
            for version in known.all_versions():
                yield {"name": name, "version": str(version)}
                for other in other_layouts(known, version):
                    yield {"name": name, "version": f"{version}@{other['release']}"}


KIND = Kind("message", "message/{name}/{version}.html", "message.html", make, every)
