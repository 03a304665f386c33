"""A lake in, what of its recordings could not be read out: losses, what was encrypted, what is in quarantine."""

from collections import Counter
from dataclasses import dataclass

from kafkascope.lake.home import Lake
from kafkascope.report.mart_rows import rows
from kafkascope.report.scope import Scope

MOST_CAPTURES = 60
MOST_QUARANTINED = 40

CAPTURES = (
    "capture_uri kind bytes packets log_lines first_at last_at exchanges lost_bytes lost_places tls_bytes tcp_bytes"
    " quarantined"
).split()
QUARANTINE = "kind message api_version detail bytes exchange_id".split()
CONNECTIONS = "protocol client_bytes broker_bytes".split()
_SUMS = "bytes packets log_lines exchanges lost_bytes lost_places tls_bytes tcp_bytes quarantined".split()


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
    for row in rows(lake, "captures", CAPTURES, scope.over("first_at", "last_at")):
        one = Capture(**(row | {name: row[name] or 0 for name in _SUMS}))
        recordings += 1
        for name in _SUMS:
            setattr(total, name, getattr(total, name) + getattr(one, name))
        if one.first_at is not None:
            total.first_at = one.first_at if total.first_at is None else min(total.first_at, one.first_at)
        if one.last_at is not None:
            total.last_at = one.last_at if total.last_at is None else max(total.last_at, one.last_at)
        found.append(one)
        if len(found) >= 4 * MOST_CAPTURES:
            found = sorted(found, key=_worst)[:MOST_CAPTURES]
    shown = sorted(sorted(found, key=_worst)[:MOST_CAPTURES], key=lambda one: (one.first_at or 0, one.capture_uri))
    quarantine, left_out = _quarantine(lake, scope)
    protocols = _protocols(lake, scope)
    return Unread(total, recordings, tuple(shown), recordings - len(shown), protocols, quarantine, left_out)


def _worst(capture: Capture) -> tuple[int, int, str]:
    return -capture.quarantined, -capture.lost_bytes - capture.tls_bytes, capture.capture_uri


def _protocols(lake: Lake, scope: Scope) -> tuple[Protocol, ...]:
    connections: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for row in rows(lake, "connections", CONNECTIONS, scope.over("first_at", "last_at")):
        name = row["protocol"] or "unknown"
        connections[name] += 1
        sizes[name] += (row["client_bytes"] or 0) + (row["broker_bytes"] or 0)
    return tuple(Protocol(name, count, sizes[name]) for name, count in connections.most_common())


def _quarantine(lake: Lake, scope: Scope) -> tuple[tuple[Quarantined, ...], int]:
    found: dict[tuple[str, str | None, int | None, str], Quarantined] = {}
    rest = 0
    for row in rows(lake, "quarantine", QUARANTINE, scope.at("at")):
        key = (row["kind"] or "", row["message"], row["api_version"], row["detail"] or "")
        if key not in found and len(found) >= 4 * MOST_QUARANTINED:
            rest += 1
            continue
        one = found.setdefault(key, Quarantined(*key, exchange_id=row["exchange_id"]))
        one.rows += 1
        one.bytes += row["bytes"] or 0
    order = sorted(found.values(), key=lambda one: (-one.rows, one.kind, one.message or ""))
    return tuple(order[:MOST_QUARANTINED]), rest + sum(one.rows for one in order[MOST_QUARANTINED:])
