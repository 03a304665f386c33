"""Two pages with every release: what each changed on the wire, and the upgrades from each to a newer one."""

from itertools import pairwise
from typing import Any

from kafkascope.explorer.page import Kind, Page
from kafkascope.schema.history.release_changes import between, by_kind
from kafkascope.schema.releases import newest_release, releases


def make_releases() -> Page:
    known = releases()
    rows: list[dict[str, Any]] = [_release(old.name, new.name) for old, new in pairwise(known)]
    first: dict[str, Any] = {
        "release": known[0].name,
        "previous": None,
        "added": [],
        "removed": [],
        "changed": 0,
        "errors": 0,
    }
    facts = {"newest": newest_release(), "releases": [*reversed(rows), first]}
    return Page("Releases", facts, "Every Kafka release, and what it changed on the wire.")


def _release(old: str, new: str) -> dict[str, Any]:
    changes = between(old, new)
    apis: dict[str, list[str]] = {}
    for change in by_kind(changes.messages)["request"]:
        name = change.name.removesuffix("Request").removesuffix("Response")
        apis.setdefault("changed" if change.what == "layout" else change.what, []).append(name)
    came, went = (list(dict.fromkeys(apis.get(what, []))) for what in ("added", "removed"))
    others = {name for what in ("versions", "changed") for name in apis.get(what, [])} - {*came, *went}
    return {
        "release": new,
        "previous": old,
        "added": came,
        "removed": went,
        "changed": len(others),
        "errors": len(changes.errors),
    }


def make_upgrades() -> Page:
    names = [release.name for release in releases()]
    facts = {
        "newest": newest_release(),
        "releases": names[::-1],
        "upgrades": [{"old": old, "new": new} for old, new in reversed(list(pairwise(names)))],
    }
    return Page("Upgrades", facts, "What breaks for a client between any two Kafka releases.")


RELEASES = Kind("releases", "releases.html", "releases.html", make_releases, lambda: ({},))
UPGRADES = Kind("upgrades", "upgrades.html", "upgrades.html", make_upgrades, lambda: ({},))
