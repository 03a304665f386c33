"""Summarizes what changed between two releases: messages by kind, names, error codes, and how much of each is known."""

from dataclasses import dataclass, replace
from functools import lru_cache

from kafkascope.schema.catalog import index, message
from kafkascope.schema.errors.error_codes import ErrorCode, error_codes
from kafkascope.schema.history.compare import MessageChange, compare_releases, versions_in
from kafkascope.schema.releases import release_order, releases

KIND_TITLES = {
    "request": "Requests and responses",
    "metadata": "Metadata records",
    "key": "Record keys and values",
    "data": "Data messages and headers",
}
_SAME = {"response": "request", "value": "key", "header": "data"}


@dataclass(frozen=True, slots=True)
class ReleaseChanges:
    """`errors` are the codes that only the later release has. `renamed` are (earlier name, name) of messages."""

    old: str
    new: str
    forward: bool
    messages: tuple[MessageChange, ...]
    errors: tuple[ErrorCode, ...]
    renamed: tuple[tuple[str, str], ...]


# Of neighbours, which several pages of the explorer show.
@lru_cache(maxsize=64)
def between(old: str, new: str) -> ReleaseChanges:
    order = release_order()
    first, last = sorted((order[old], order[new]))
    errors = tuple(e for e in error_codes().values() if first < order[e.release] <= last)
    aliased = [message(name) for name, entry in index().items() if entry.aliases]
    renamed = tuple(
        (item.name_in(old), item.name_in(new))
        for item in aliased
        if item.name_in(old) != item.name_in(new) and versions_in(item, old) and versions_in(item, new)
    )
    return ReleaseChanges(old, new, order[old] < order[new], tuple(compare_releases(old, new)), errors, renamed)


def by_kind(changes: tuple[MessageChange, ...]) -> dict[str, list[MessageChange]]:
    """The changes under the titles of `KIND_TITLES`, with changes that both halves share as one."""
    return {
        kind: _paired([c for c in changes if _SAME.get(index()[c.name].kind, index()[c.name].kind) == kind])
        for kind in KIND_TITLES
    }


def _paired(changes: list[MessageChange]) -> list[MessageChange]:
    """Request and response of an API, or key and value of a record, that changed alike become one row."""
    rows: list[MessageChange] = []
    for change in changes:
        for first, second in (("Request", "Response"), ("Key", "Value")):
            partner = change.name.removesuffix(second) + first
            twin = next((row for row in rows if row.name == partner and change.name.endswith(second)), None)
            if twin and replace(twin, name=change.name) == change and not change.changes:
                rows[rows.index(twin)] = replace(twin, name=change.name.removesuffix(second))
                break
        else:
            rows.append(change)
    return rows


def coverage_remarks(*names: str) -> list[str]:
    """What isn't known about these releases."""
    return [
        _coverage(release.name, release.coverage)
        for release in releases()
        if release.name in names and release.coverage != "all"
    ]


def _coverage(name: str, coverage: str) -> str:
    if coverage == "clients":
        return f"For {name}, only the client messages are published yet: its records are those of the previous release."
    return f"For {name}, only version ranges are known: without definition files, layouts and records aren't compared."
