"""A lake in, what of its recordings could not be read out: losses, what was encrypted, what is in quarantine."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from kafkascope.lake.home import Lake
from kafkascope.lake.read.visible_rows import GROWN_FROM
from kafkascope.report.summaries.mart_rows import batches, rows
from kafkascope.report.summaries.scope import Scope

MOST_CAPTURES = 60
MOST_QUARANTINED = 40

CAPTURES = (
    "capture_uri kind bytes packets log_lines first_at last_at exchanges lost_bytes lost_places tls_bytes tcp_bytes"
    " quarantined"
).split()
QUARANTINE = "kind message api_version detail bytes exchange_id capture_uri".split()
CONNECTIONS = "connection_id last_at protocol client_bytes broker_bytes".split()
_SUMS = "bytes packets log_lines exchanges lost_bytes lost_places tls_bytes tcp_bytes quarantined".split()
# Each row of a file that has grown has all of these, and of the others what was new.
_WHOLE = ("bytes", "packets", "log_lines")


@dataclass(slots=True)
class Capture:
    capture_uri: str
    kind: str | None
    bytes: int
    packets: int
    log_lines: int
    first_at: int | None
    last_at: int | None
    exchanges: int
    lost_bytes: int
    lost_places: int
    tls_bytes: int
    tcp_bytes: int
    quarantined: int


@dataclass(slots=True)
class Quarantined:
    """Rows of one kind, message and reason."""

    kind: str
    message: str | None
    api_version: int | None
    detail: str
    rows: int = 0
    bytes: int = 0
    exchange_id: str | None = None


@dataclass(slots=True)
class Protocol:
    protocol: str
    connections: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Unread:
    """`total` sums all captures, also those that are left out."""

    total: Capture
    recordings: int
    captures: tuple[Capture, ...]
    captures_left_out: int
    protocols: tuple[Protocol, ...]
    quarantine: tuple[Quarantined, ...]
    quarantine_left_out: int


def unread_in(lake: Lake, scope: Scope) -> Unread:
    total = Capture("", None, 0, 0, 0, None, None, 0, 0, 0, 0, 0, 0)
    found: list[Capture] = []
    recordings = 0
    quarantine, left_out, by_uri = _quarantine(lake, scope)
    for one in _captures(lake, scope, by_uri):
        recordings += 1
        for name in _SUMS:
            setattr(total, name, getattr(total, name) + getattr(one, name))
        _widen(total, one)
        found.append(one)
        if len(found) >= 4 * MOST_CAPTURES:
            found = sorted(found, key=_worst)[:MOST_CAPTURES]
    shown = sorted(sorted(found, key=_worst)[:MOST_CAPTURES], key=lambda one: (one.first_at or 0, one.capture_uri))
    protocols = _protocols(lake, scope)
    return Unread(total, recordings, tuple(shown), recordings - len(shown), protocols, quarantine, left_out)


def _captures(lake: Lake, scope: Scope, quarantined: Mapping[str, int]) -> Iterator[Capture]:
    """Each file once, however often it came: one that has grown has a row an ingest. What was wrong with its end may
    be out of quarantine since, so its rows there are counted again."""
    earlier = _earlier(lake)
    members = {*earlier, *earlier.values()}
    grown: dict[str, tuple[Capture, set[str]]] = {}
    for row in rows(lake, "captures", [*CAPTURES, "digest"], scope.over("first_at", "last_at")):
        digest = row.pop("digest")
        one = Capture(**(row | {name: row[name] or 0 for name in _SUMS}))
        if digest not in members:
            yield one
            continue
        digest = _first(earlier, digest)
        if digest in grown:
            grown[digest] = _joined(grown[digest][0], one), grown[digest][1] | {one.capture_uri}
        else:
            grown[digest] = one, {one.capture_uri}
    for one, uris in grown.values():
        yield replace(one, quarantined=sum(quarantined[uri] for uri in uris))


def _earlier(lake: Lake) -> dict[str, str]:
    """Digest of a file that has grown to that of what it was before."""
    found: dict[str, str] = {}
    for row in rows(lake, "captures", ["digest", "options"]):
        if row["options"] and GROWN_FROM in row["options"]:
            known = _told(row["options"]).get(GROWN_FROM)
            if isinstance(known, str) and known:
                found[row["digest"]] = known
    return found


def _told(options: str) -> dict[str, Any]:
    """Of a lake of somebody else, anything."""
    try:
        found = json.loads(options)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _first(earlier: Mapping[str, str], digest: str) -> str:
    """What a file was first. A lake of somebody else may tell of circles."""
    seen = {digest}
    while (known := earlier.get(digest)) is not None and known not in seen:
        seen.add(known)
        digest = known
    return digest


def _joined(one: Capture, other: Capture) -> Capture:
    small, large = sorted((one, other), key=lambda each: each.bytes)
    made = replace(large)
    for name in _SUMS:
        if name not in _WHOLE:
            setattr(made, name, getattr(one, name) + getattr(other, name))
    _widen(made, small)
    return made


def _widen(made: Capture, one: Capture) -> None:
    if one.first_at is not None:
        made.first_at = one.first_at if made.first_at is None else min(made.first_at, one.first_at)
    if one.last_at is not None:
        made.last_at = one.last_at if made.last_at is None else max(made.last_at, one.last_at)


def _worst(capture: Capture) -> tuple[int, int, str]:
    return -capture.quarantined, -capture.lost_bytes - capture.tls_bytes, capture.capture_uri


def _protocols(lake: Lake, scope: Scope) -> tuple[Protocol, ...]:
    """Every connection once: a later ingest tells again of one that went on, from its beginning."""
    found = list(batches(lake, "connections", CONNECTIONS, scope.over("first_at", "last_at")))
    if not found:
        return ()
    told = pa.Table.from_batches(found).sort_by([("last_at", "ascending"), ("client_bytes", "ascending")])
    # In the order of the rows: with threads the last is any.
    latest = told.group_by("connection_id", use_threads=False).aggregate(
        [(name, "last") for name in ("protocol", "client_bytes", "broker_bytes")]
    )
    connections: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    columns = (latest.column(f"{name}_last").to_pylist() for name in ("protocol", "client_bytes", "broker_bytes"))
    for protocol, client, broker in zip(*columns, strict=True):
        name = protocol or "unknown"
        connections[name] += 1
        sizes[name] += (client or 0) + (broker or 0)
    return tuple(Protocol(name, count, sizes[name]) for name, count in connections.most_common())


def _quarantine(lake: Lake, scope: Scope) -> tuple[tuple[Quarantined, ...], int, Counter[str]]:
    """(what is shown, how many rows are not, rows by file)"""
    by_uri: Counter[str] = Counter()
    found: dict[tuple[str, str | None, int | None, str], Quarantined] = {}
    rest = 0
    for row in rows(lake, "quarantine", QUARANTINE, scope.at("recorded_at")):
        by_uri[row["capture_uri"] or ""] += 1
        key = (row["kind"] or "", row["message"], row["api_version"], row["detail"] or "")
        if key not in found and len(found) >= 4 * MOST_QUARANTINED:
            rest += 1
            continue
        one = found.setdefault(key, Quarantined(*key, exchange_id=row["exchange_id"]))
        one.rows += 1
        one.bytes += row["bytes"] or 0
    order = sorted(found.values(), key=lambda one: (-one.rows, one.kind, one.message or ""))
    return tuple(order[:MOST_QUARANTINED]), rest + sum(one.rows for one in order[MOST_QUARANTINED:]), by_uri
