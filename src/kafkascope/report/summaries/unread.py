"""Summarizes what could not be read: lost bytes, encrypted connections, and quarantined frames."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from kafkascope.lake.home import Lake
from kafkascope.lake.read.mart_rows import batches, rows
from kafkascope.lake.read.visible_rows import GROWN_FROM
from kafkascope.report.summaries.scope import Scope

_MOST_CAPTURES = 60
_MOST_QUARANTINED = 40

_CAPTURES = (
    "capture_uri kind bytes packets log_lines first_at last_at exchanges lost_bytes lost_places tls_bytes tcp_bytes"
    " quarantined"
).split()
_QUARANTINE = "kind message api_version detail bytes exchange_id capture_uri".split()
_CONNECTIONS = "connection_id last_at protocol client_bytes broker_bytes".split()
_SUMS = "bytes packets log_lines exchanges lost_bytes lost_places tls_bytes tcp_bytes quarantined".split()
# A later row of a file that has grown holds the totals of these columns; of the others it holds only what was new.
_WHOLE = ("bytes", "packets", "log_lines")


@dataclass(slots=True)
class CaptureTotals:
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
    """Quarantined frames of one kind, message and reason."""

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
    """`total` sums all captures, including those left out."""

    total: CaptureTotals
    recordings: int
    captures: tuple[CaptureTotals, ...]
    captures_left_out: int
    protocols: tuple[Protocol, ...]
    quarantine: tuple[Quarantined, ...]
    quarantine_left_out: int


def unread_in(lake: Lake, scope: Scope) -> Unread:
    total = CaptureTotals("", None, 0, 0, 0, None, None, 0, 0, 0, 0, 0, 0)
    captures: list[CaptureTotals] = []
    recordings = 0
    quarantine, left_out, by_uri = _quarantine(lake, scope)
    for capture in _captures(lake, scope, by_uri):
        recordings += 1
        for name in _SUMS:
            setattr(total, name, getattr(total, name) + getattr(capture, name))
        _widen(total, capture)
        captures.append(capture)
        if len(captures) >= 4 * _MOST_CAPTURES:
            captures = sorted(captures, key=_worst)[:_MOST_CAPTURES]
    shown = sorted(
        sorted(captures, key=_worst)[:_MOST_CAPTURES], key=lambda capture: (capture.first_at or 0, capture.capture_uri)
    )
    protocols = _protocols(lake, scope)
    return Unread(total, recordings, tuple(shown), recordings - len(shown), protocols, quarantine, left_out)


def _captures(lake: Lake, scope: Scope, quarantined: Mapping[str, int]) -> Iterator[CaptureTotals]:
    """Each file once, however often it was ingested: a file that has grown has one row per ingest. A later ingest may
    have resolved what an earlier one quarantined at its end, so its rows in quarantine are recounted."""
    earlier = _earlier(lake)
    members = {*earlier, *earlier.values()}
    grown: dict[str, tuple[CaptureTotals, set[str]]] = {}
    for row in rows(lake, "captures", [*_CAPTURES, "digest"], scope.over("first_at", "last_at")):
        digest = row.pop("digest")
        capture = CaptureTotals(**(row | {name: row[name] or 0 for name in _SUMS}))
        if digest not in members:
            yield capture
            continue
        digest = _first(earlier, digest)
        if digest in grown:
            grown[digest] = _joined(grown[digest][0], capture), grown[digest][1] | {capture.capture_uri}
        else:
            grown[digest] = capture, {capture.capture_uri}
    for capture, uris in grown.values():
        yield replace(capture, quarantined=sum(quarantined[uri] for uri in uris))


def _earlier(lake: Lake) -> dict[str, str]:
    """Maps the digest of a file that has grown to its digest before."""
    predecessors: dict[str, str] = {}
    for row in rows(lake, "captures", ["digest", "options"]):
        if row["options"] and GROWN_FROM in row["options"]:
            predecessor = _options(row["options"]).get(GROWN_FROM)
            if isinstance(predecessor, str) and predecessor:
                predecessors[row["digest"]] = predecessor
    return predecessors


def _options(options: str) -> dict[str, Any]:
    """A foreign lake may hold anything here."""
    try:
        parsed = json.loads(options)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _first(earlier: Mapping[str, str], digest: str) -> str:
    """The first digest of a file. In a foreign lake the chain may be a circle."""
    seen = {digest}
    while (predecessor := earlier.get(digest)) is not None and predecessor not in seen:
        seen.add(predecessor)
        digest = predecessor
    return digest


def _joined(left: CaptureTotals, right: CaptureTotals) -> CaptureTotals:
    small, large = sorted((left, right), key=lambda capture: capture.bytes)
    joined = replace(large)
    for name in _SUMS:
        if name not in _WHOLE:
            setattr(joined, name, getattr(left, name) + getattr(right, name))
    _widen(joined, small)
    return joined


def _widen(total: CaptureTotals, capture: CaptureTotals) -> None:
    if capture.first_at is not None:
        total.first_at = capture.first_at if total.first_at is None else min(total.first_at, capture.first_at)
    if capture.last_at is not None:
        total.last_at = capture.last_at if total.last_at is None else max(total.last_at, capture.last_at)


def _worst(capture: CaptureTotals) -> tuple[int, int, str]:
    return -capture.quarantined, -capture.lost_bytes - capture.tls_bytes, capture.capture_uri


def _protocols(lake: Lake, scope: Scope) -> tuple[Protocol, ...]:
    """Each connection once: a later ingest writes the whole row of a connection that went on."""
    parts = list(batches(lake, "connections", _CONNECTIONS, scope.over("first_at", "last_at")))
    if not parts:
        return ()
    connections = pa.Table.from_batches(parts).sort_by([("last_at", "ascending"), ("client_bytes", "ascending")])
    # Without threads, so that `last` is the last row.
    latest = connections.group_by("connection_id", use_threads=False).aggregate(
        [(name, "last") for name in ("protocol", "client_bytes", "broker_bytes")]
    )
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    columns = (latest.column(f"{name}_last").to_pylist() for name in ("protocol", "client_bytes", "broker_bytes"))
    for protocol, client, broker in zip(*columns, strict=True):
        name = protocol or "unknown"
        counts[name] += 1
        sizes[name] += (client or 0) + (broker or 0)
    return tuple(Protocol(name, count, sizes[name]) for name, count in counts.most_common())


def _quarantine(lake: Lake, scope: Scope) -> tuple[tuple[Quarantined, ...], int, Counter[str]]:
    """(reasons shown, rows left out, rows by file)"""
    by_uri: Counter[str] = Counter()
    by_reason: dict[tuple[str, str | None, int | None, str], Quarantined] = {}
    uncounted = 0
    for row in rows(lake, "quarantine", _QUARANTINE, scope.at("recorded_at")):
        by_uri[row["capture_uri"] or ""] += 1
        key = (row["kind"] or "", row["message"], row["api_version"], row["detail"] or "")
        if key not in by_reason and len(by_reason) >= 4 * _MOST_QUARANTINED:
            uncounted += 1
            continue
        reason = by_reason.setdefault(key, Quarantined(*key, exchange_id=row["exchange_id"]))
        reason.rows += 1
        reason.bytes += row["bytes"] or 0
    order = sorted(by_reason.values(), key=lambda reason: (-reason.rows, reason.kind, reason.message or ""))
    shown, hidden = order[:_MOST_QUARANTINED], order[_MOST_QUARANTINED:]
    return tuple(shown), uncounted + sum(reason.rows for reason in hidden), by_uri
