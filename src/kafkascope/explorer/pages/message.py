"""The page of one version of a message; `2@4.3` is version 2 in the layout of Kafka 4.3."""

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

_KINDS_HERE = ("request", "response", "header")


def make(name: str, version: str) -> Page:
    message_layout = find_layout(name, version, _KINDS_HERE)
    return message_page(message_layout)


def message_page(message_layout: Layout) -> Page:
    """Facts of any message, including records."""
    in_release = f" in the layout of Kafka {message_layout.release}" if message_layout.release else ""
    prose = paragraphs(message_layout.message)
    about = prose[0].partition(". ")[0].rstrip(".") + "." if prose else ""
    return Page(
        f"{message_layout.message.name} v{message_layout.version}{in_release}", message_facts(message_layout), about
    )


def find_layout(name: str, version: str, kinds: tuple[str, ...]) -> Layout:
    """`NotFoundError` or `UsageError` for an unknown message, version or release."""
    if name not in index() or index()[name].kind not in kinds:
        raise NotFoundError(not_called("record" if "data" in kinds else "message", name, kinds))
    number, _, release = version.partition("@")
    parsed = parse_number(number)
    if parsed is None or parsed < 0:
        raise UsageError(f"'{clip(version)}' isn't a version; {describe_versions(message(name))}")
    parsed_release = check_release(release) if release else None
    written = f"{parsed}@{parsed_release}" if parsed_release else str(parsed)
    if written != version:
        raise UsageError(f"'{clip(version)}' must be written {written}")  # a page has only one address
    return layout(name, parsed, parsed_release)


def message_facts(message_layout: Layout) -> dict[str, Any]:
    definition, version = message_layout.message, message_layout.version
    return {
        "message": definition.name,
        "kind": definition.kind,
        "api": definition.api,
        "key": definition.key,
        "version": version,
        "release": message_layout.release,
        "calledThen": definition.name_in(message_layout.release)
        if definition.name_in(message_layout.release) != definition.name
        else None,
        "releases": [str(span) for span in definition.releases_of(version)],
        "flexible": message_layout.flexible,
        "unstableIn": [str(span) for span, unstable in definition.unstable if unstable == version],
        "deprecatedIn": [str(span) for span, versions in definition.deprecated if version in versions],
        "aliases": [{"name": name, "lastRelease": last} for name, last in definition.was],
        "versions": [
            {"version": v, "releases": span_text(definition.releases_of(v))} for v in definition.all_versions()
        ],
        "previous": version - 1 if version - 1 in definition.all_versions() and not message_layout.release else None,
        "otherLayouts": _other_layouts(definition, version),
        "prose": list(paragraphs(definition)),
        "kips": kips_of(definition, version),
        "errors": _errors_by_field(definition, version),
        "wire": wire_facts(message_layout),
        "fields": tree(message_layout),
        "schema": typed_json(message_layout),
        "example": example_facts(message_layout),
    }


def _other_layouts(definition: Message, version: int) -> list[dict[str, str]]:
    """Releases with another layout of the version; `release` is the last one with it."""
    return [
        {"releases": str(block.releases), "release": block.releases.last or block.releases.first}
        for block in definition.blocks
        if block.releases and version in block.versions
    ]


def _errors_by_field(definition: Message, version: int) -> list[dict[str, Any]]:
    """`field` is the place in the response that carries the error, None if no source names it."""
    if not definition.api:
        return []
    errors = errors_of(definition, version)
    places: list[str | None] = [*error_fields(message(f"{definition.api}Response"), version), None]
    grouped = []
    for place in places:
        here = [item for item in errors if (place in item.fields if place else not item.fields)]
        if here:
            listed = [
                {"code": i.error.code, "name": i.error.name, "retriable": i.error.retriable, "origin": i.origin,
                 "where": i.where}
                for i in here
            ]  # fmt: skip
            grouped.append({"field": place, "errors": listed})
    return grouped


def every() -> Iterator[dict[str, str]]:
    return every_of(_KINDS_HERE)


def every_of(kinds: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """All versions of all messages of these kinds, and the layouts of single releases."""
    for name, entry in index().items():
        if entry.kind in kinds:
            definition = message(name)
            for version in definition.all_versions():
                yield {"name": name, "version": str(version)}
                for other in _other_layouts(definition, version):
                    yield {"name": name, "version": f"{version}@{other['release']}"}


KIND = Kind("message", "message/{name}/{version}.html", "message.html", make, every)
