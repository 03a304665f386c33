"""Lists every record format of Kafka by the topic or file that stores it."""

from typing import Any

from kafkascope.explorer.page import Kind, Page
from kafkascope.explorer.pages.record import KINDS_HERE, present_version
from kafkascope.schema.catalog import index, message
from kafkascope.schema.export import span_text
from kafkascope.schema.prose import paragraphs
from kafkascope.schema.record_places import RECORD_GROUPS, group_of


def make() -> Page:
    names: dict[str, list[str]] = {group: [] for group in RECORD_GROUPS}
    for name, entry in index().items():
        if entry.kind in KINDS_HERE:
            names[group_of(name)].append(name)
    facts = {
        "groups": [
            {
                "group": group,
                "title": RECORD_GROUPS[group],
                "records": [_record(name) for name in sorted(held, key=_order)],
            }
            for group, held in names.items()
        ]
    }
    return Page(
        "Records", facts, "Every record that Kafka writes to its own topics and files, and the data inside messages."
    )


def _order(name: str) -> tuple[int, str]:
    key = index()[name].key
    return (1_000 if key is None else key, name)


def _record(name: str) -> dict[str, Any]:
    definition = message(name)
    versions = definition.all_versions()
    prose = paragraphs(definition)
    return {
        "name": name,
        "kind": definition.kind,
        "key": definition.key,
        "version": present_version(name),
        "versions": versions,
        "releases": span_text(definition.releases_of(present_version(name))),
        "about": prose[0].partition(". ")[0].rstrip(".") + "." if prose else "",
    }


KIND = Kind("records", "records.html", "records.html", make, lambda: ({},))
