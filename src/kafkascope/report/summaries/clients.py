"""Summarizes client software: API versions in use, and the releases that serve all of them."""

from dataclasses import dataclass, field

from kafkascope.lake.home import Lake
from kafkascope.lake.read.mart_rows import rows
from kafkascope.report.summaries.scope import Scope
from kafkascope.schema.releases import newest_release, release_order

_MOST_SOFTWARE = 60
_MOST_IDS = 8
_MOST_DROPPED = 12

_COLUMNS = (
    "client_software client_id api api_version calls first_release last_release in_newest_release first_at last_at"
).split()


@dataclass(frozen=True, slots=True)
class Dropped:
    """A version that the newest release doesn't serve. `last_release` is None if no known release serves it."""

    api: str
    api_version: int
    calls: int
    last_release: str | None


@dataclass(slots=True)
class Software:
    """`needs_release` is the first release that serves all versions seen, `until_release` the last; None if the newest
    does. `client_software` is None if the client didn't send its name."""

    client_software: str | None
    calls: int = 0
    apis: int = 0
    client_ids: list[str] = field(default_factory=list)
    client_ids_left_out: int = 0
    ready: bool = True
    needs_release: str | None = None
    until_release: str | None = None
    dropped: list[Dropped] = field(default_factory=list)
    dropped_left_out: int = 0
    last_at: int | None = None


@dataclass(frozen=True, slots=True)
class Clients:
    newest_release: str
    software: tuple[Software, ...]
    left_out: int


def clients_in(lake: Lake, scope: Scope) -> Clients:
    by_name: dict[str | None, Software] = {}
    ids: dict[str | None, dict[str, int]] = {}
    apis: dict[str | None, set[str]] = {}
    dropped: dict[tuple[str | None, str, int], Dropped] = {}
    for row in rows(lake, "client_versions", _COLUMNS, scope.over("first_at", "last_at")):
        name = row["client_software"]
        software = by_name.setdefault(name, Software(name))
        calls = row["calls"] or 0
        software.calls += calls
        client_id = row["client_id"] or ""
        ids.setdefault(name, {})[client_id] = ids.setdefault(name, {}).get(client_id, 0) + calls
        api = row["api"] or "an unknown API"
        apis.setdefault(name, set()).add(api)
        software.needs_release = _later(software.needs_release, row["first_release"])
        if row["last_at"] is not None:
            software.last_at = max(software.last_at or 0, row["last_at"])
        if not row["in_newest_release"]:
            software.ready = False
            software.until_release = _earlier(software.until_release, row["last_release"])
            key = (name, api, row["api_version"])
            calls += dropped[key].calls if key in dropped else 0
            dropped[key] = Dropped(api, row["api_version"], calls, row["last_release"])
    for name, software in by_name.items():
        ordered_ids = sorted(ids[name], key=lambda client_id: (-ids[name][client_id], client_id))
        software.client_ids = ordered_ids[:_MOST_IDS]
        software.client_ids_left_out = len(ordered_ids) - len(software.client_ids)
        software.apis = len(apis[name])
        gone = [drop for key, drop in sorted(dropped.items(), key=lambda item: item[0][1:]) if key[0] == name]
        software.dropped, software.dropped_left_out = gone[:_MOST_DROPPED], max(0, len(gone) - _MOST_DROPPED)
    order = sorted(
        by_name.values(), key=lambda software: (software.ready, -software.calls, software.client_software or "")
    )
    return Clients(newest_release(), tuple(order[:_MOST_SOFTWARE]), max(0, len(order) - _MOST_SOFTWARE))


def _rank(release: str) -> int:
    return release_order().get(release, len(release_order()))


def _later(left: str | None, right: str | None) -> str | None:
    if left is None or right is None:
        return right if left is None else left
    return max(left, right, key=_rank)


def _earlier(left: str | None, right: str | None) -> str | None:
    if left is None or right is None:
        return right if left is None else left
    return min(left, right, key=_rank)
