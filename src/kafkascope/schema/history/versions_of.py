"""Lists the versions of an API or message, newest first: releases, KIPs, and what changed on the wire."""

from dataclasses import dataclass
from itertools import pairwise

from kafkascope.schema.api_facts import kips_of_version
from kafkascope.schema.catalog import message
from kafkascope.schema.history.compare import Change, compare_layouts
from kafkascope.schema.layouts.layout import layout
from kafkascope.schema.model import Field, Message
from kafkascope.schema.releases import ReleaseSpan, releases


@dataclass(frozen=True, slots=True)
class VersionEntry:
    """`older` is None for the first version; `changes` are relative to it, by message. `later` are changes that a
    release made under the same number: (message, release, change). `missing_in` are patches of its releases that lack
    it."""

    version: int
    older: int | None
    spans: tuple[ReleaseSpan, ...]
    missing_in: tuple[str, ...]
    kips: tuple[int, ...]
    unstable: tuple[ReleaseSpan, ...]
    deprecated: tuple[ReleaseSpan, ...]
    changes: dict[str, tuple[Change, ...]]
    later: tuple[tuple[str, str, Change], ...]


def history(names: tuple[str, ...]) -> list[VersionEntry]:
    """Of a message, or of request and response together, which have the same versions."""
    definitions = [message(name) for name in names]
    first = definitions[0]
    versions = first.all_versions()
    entries = []
    for version in reversed(versions):
        older = version - 1 if version - 1 in versions else None
        entries.append(
            VersionEntry(
                version,
                older,
                tuple(first.releases_of(version)),
                first.patches_without(version),
                tuple(kips_of_version(first, version)),
                tuple(span for span, unstable in first.unstable if unstable == version),
                tuple(span for span, deprecated in first.deprecated if version in deprecated),
                {item.name: _changes(item.name, older, version) for item in definitions},
                tuple((item.name, *change) for item in definitions for change in _later_changes(item, version)),
            )
        )
    return entries


def _changes(name: str, older: int | None, version: int) -> tuple[Change, ...]:
    return () if older is None else tuple(compare_layouts(layout(name, older), layout(name, version)))


def _later_changes(definition: Message, version: int) -> list[tuple[str, Change]]:
    """(release, change) for each release that changed the layout of this version."""
    if not _ever_changed(definition):
        return []
    spans = definition.releases_of(version)
    having = [release.name for release in releases() if any(release.name in span for span in spans)]
    return [
        (after, change)
        for before, after in pairwise(having)
        for change in compare_layouts(layout(definition.name, version, before), layout(definition.name, version, after))
    ]


def _ever_changed(definition: Message) -> bool:
    def marked(fields: tuple[Field, ...]) -> bool:
        return any(field.since or field.was or marked(field.fields) for field in fields)

    return any(block.releases or marked(block.fields) for block in definition.blocks)
