"""A lake in, who speaks to it out: client software with its versions, and the releases that serve all that it says."""

from dataclasses import dataclass, field

from kafkascope.lake.home import Lake
from kafkascope.report.summaries.mart_rows import rows
from kafkascope.report.summaries.scope import Scope
from kafkascope.schema.releases import newest_release, release_order

MOST_SOFTWARE = 60
MOST_IDS = 8
MOST_DROPPED = 12

COLUMNS = (
    "client_software client_id api api_version calls first_release last_release in_newest_release first_at last_at"
).split()


@dataclass(frozen=True, slots=True)
class Dropped:
    """A version that the newest release does not serve; `last_release` None: no release is known to."""

    api: str
    api_version: int
    calls: int
    last_release: str | None


@dataclass(slots=True)
class Software:
    """`needs_release` is the first that serves all that it says, `until_release` the last, None while the newest
    does. `client_software` None: it did not say."""

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
    found: dict[str | None, Software] = {}
    ids: dict[str | None, dict[str, int]] = {}
    apis: dict[str | None, set[str]] = {}
    dropped: dict[tuple[str | None, str, int], Dropped] = {}
    for row in rows(lake, "client_versions", COLUMNS, scope.over("first_at", "last_at")):
        name = row["client_software"]
        one = found.setdefault(name, Software(name))
        calls = row["calls"] or 0
        one.calls += calls
        client_id = row["client_id"] or ""
        ids.setdefault(name, {})[client_id] = ids.setdefault(name, {}).get(client_id, 0) + calls
        api = row["api"] or "an unknown API"
        apis.setdefault(name, set()).add(api)
        one.needs_release = _later(one.needs_release, row["first_release"])
        if row["last_at"] is not None:
            one.last_at = max(one.last_at or 0, row["last_at"])
        if not row["in_newest_release"]:
            one.ready = False
            one.until_release = _earlier(one.until_release, row["last_release"])
            key = (name, api, row["api_version"])
            calls += dropped[key].calls if key in dropped else 0
            dropped[key] = Dropped(api, row["api_version"], calls, row["last_release"])
    for name, one in found.items():
        order = sorted(ids[name], key=lambda client_id: (-ids[name][client_id], client_id))
        one.client_ids, one.client_ids_left_out = order[:MOST_IDS], max(0, len(order) - MOST_IDS)
        one.apis = len(apis[name])
        gone = [drop for key, drop in sorted(dropped.items(), key=lambda item: item[0][1:]) if key[0] == name]
        one.dropped, one.dropped_left_out = gone[:MOST_DROPPED], max(0, len(gone) - MOST_DROPPED)
    order_of = sorted(found.values(), key=lambda one: (one.ready, -one.calls, one.client_software or ""))
    return Clients(newest_release(), tuple(order_of[:MOST_SOFTWARE]), max(0, len(order_of) - MOST_SOFTWARE))


def _rank(release: str) -> int:
    return release_order().get(release, len(release_order()))


def _later(one: str | None, other: str | None) -> str | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other, key=_rank)


def _earlier(one: str | None, other: str | None) -> str | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other, key=_rank)
