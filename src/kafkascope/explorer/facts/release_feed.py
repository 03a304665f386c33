"""Writes the Atom feed of releases: what each changed on the wire, the newest first."""

import os
from datetime import UTC, datetime
from xml.sax.saxutils import escape

from kafkascope import __version__
from kafkascope.schema.files import DATA_FOLDER
from kafkascope.schema.history.release_changes import between, by_kind
from kafkascope.schema.releases import releases
from kafkascope.times import iso

_MOST_NAMES = 6


def release_feed() -> str:
    """Addresses are relative to the feed. The catalog has no release dates, so entries have the catalog's date."""
    at = datetime.fromtimestamp(os.path.getmtime(os.path.join(DATA_FOLDER, "releases.txt")), UTC)
    updated = iso(at, "seconds")
    known = releases()
    entries = []
    for previous, release in zip(reversed(known[:-1]), reversed(known[1:]), strict=True):
        entries.append(
            f"<entry><title>Kafka {release.name}</title><id>urn:kafkascope:release:{release.name}</id>"
            f'<link href="release/{release.name}.html"/><updated>{updated}</updated>'
            f"<summary>{escape(_summary(previous.name, release.name))}</summary></entry>\n"
        )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        "<title>Kafka releases on the wire</title><id>urn:kafkascope:releases</id>"
        f'<link rel="self" href="releases.xml"/><link href="releases.html"/><updated>{updated}</updated>\n'
        f"<author><name>kafkascope {__version__}</name></author>\n{''.join(entries)}</feed>\n"
    )


def _summary(old: str, new: str) -> str:
    changes = between(old, new)
    names = [
        change.name.removesuffix("Request").removesuffix("Response") for change in by_kind(changes.messages)["request"]
    ]
    apis = list(dict.fromkeys(names))
    more = f" and {len(apis) - _MOST_NAMES} more" if len(apis) > _MOST_NAMES else ""
    parts = [f"{len(apis)} APIs changed: {', '.join(apis[:_MOST_NAMES])}{more}"] if apis else ["No API changed"]
    if changes.errors:
        parts.append(f"new errors: {', '.join(error.name for error in changes.errors)}")
    return "; ".join(parts) + "."
