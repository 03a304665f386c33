"""Compares two Kafka releases for a client that upgrades: what breaks, and what is new."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from kafkascope.explorer.facts.changes import all_changes
from kafkascope.explorer.page import Kind, Page
from kafkascope.explorer.pages.release import known_release
from kafkascope.schema.api_facts import api_facts, family_of
from kafkascope.schema.history.release_changes import between
from kafkascope.schema.history.upgrade import ApiUpgrade, upgrade
from kafkascope.schema.releases import Release, newest_release, release_order, releases
from kafkascope.schema.versions import format_versions


def make(a: str, b: str) -> Page:
    old, new = known_release(a), known_release(b)
    steps = upgrade(old, new)
    order = release_order()
    errors = between(old, new).errors
    facts = {
        "old": old,
        "new": new,
        "forward": order[old] <= order[new],
        "newest": newest_release(),
        "releases": [release.name for release in releases()],
        "remarks": [remark for release in releases() if release.name in (old, new) and (remark := _remark(release))],
        "counts": {
            verdict: sum(step.verdict == verdict for step in steps)
            for verdict in ("gone", "broken", "changed", "grown", "new", "same")
        },
        "steps": [_step(step) for step in steps],
        "errors": [{"name": error.name, "code": error.code, "since": error.release} for error in errors],
    }
    return Page(f"From Kafka {old} to {new}", facts, f"What breaks for a client between Kafka {old} and {new}.")


def _remark(release: Release) -> str:
    """Only layouts of requests and responses matter here, not what is unknown about records."""
    if release.coverage != "versions":
        return ""
    return f"For {release.name} only version ranges are known; the fields are those of its versions in later releases."


def _step(step: ApiUpgrade) -> dict[str, Any]:
    return {
        "api": step.api,
        "family": family_of(step.api),
        "forClients": step.for_clients,
        "sentBy": list(api_facts(step.api).sends),
        "verdict": step.verdict,
        "oldVersions": format_versions(list(step.old)) or None,
        "newVersions": format_versions(list(step.new)) or None,
        "before": step.before,
        "after": step.after,
        "mixed": step.mixed,
        "changes": [
            {"message": name, "changes": all_changes(changes)} for name, changes in step.changes.items() if changes
        ],
        "strangeErrors": [error.name for error in step.strange],
    }


def every() -> Iterator[dict[str, str]]:
    """Neighbouring releases, and each release with the newest."""
    names = [release.name for release in releases()]
    pairs = dict.fromkeys((*pairwise(names), *((name, names[-1]) for name in names[:-1])))
    for a, b in pairs:
        yield {"a": a, "b": b}


KIND = Kind("upgrade", "upgrade/{a}-{b}.html", "upgrade.html", make, every)
