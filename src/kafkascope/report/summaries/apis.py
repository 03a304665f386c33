"""Summarizes API calls: latency with long polls apart, errors, and throttling."""

from collections import Counter
from dataclasses import dataclass, field

from kafkascope.lake.home import Lake
from kafkascope.lake.read.mart_rows import rows
from kafkascope.report.summaries.scope import Scope

_MOST_APIS = 100
_MOST_ERRORS = 60
_MOST_THROTTLED = 40
MOST_CLIENTS = 3

_LATENCY = (
    "api long_poll calls unanswered errors request_bytes response_bytes p50_us p95_us p99_us max_us slowest_exchange_id"
).split()
_ERRORS = "api error_code error client_id calls first_at last_at first_exchange_id".split()
_THROTTLING = "api client_id calls throttled throttle_ms max_throttle_ms longest_exchange_id".split()


@dataclass(slots=True)
class ApiLatency:
    """`p50_us` is the mean of the minutes' medians, weighted by calls; `p95_us` and `p99_us` are the worst minute's."""

    api: str
    long_poll: bool
    calls: int = 0
    unanswered: int = 0
    errors: int = 0
    bytes: int = 0
    p50_us: int | None = None
    p95_us: int | None = None
    p99_us: int | None = None
    max_us: int | None = None
    slowest_exchange_id: str | None = None


@dataclass(slots=True)
class ApiError:
    api: str
    error: str
    error_code: int
    calls: int = 0
    clients: list[str] = field(default_factory=list)
    clients_left_out: int = 0
    first_at: int | None = None
    last_at: int | None = None
    first_exchange_id: str | None = None


@dataclass(slots=True)
class Throttled:
    client_id: str
    api: str
    calls: int = 0
    throttled: int = 0
    throttle_ms: int = 0
    max_throttle_ms: int = 0
    longest_exchange_id: str | None = None


@dataclass(frozen=True, slots=True)
class ApiSummary:
    latency: tuple[ApiLatency, ...]
    latency_left_out: int
    errors: tuple[ApiError, ...]
    errors_left_out: int
    throttling: tuple[Throttled, ...]
    throttling_left_out: int


def apis_in(lake: Lake, scope: Scope) -> ApiSummary:
    latency, errors, throttled = _latency(lake, scope), _errors(lake, scope), _throttling(lake, scope)
    return ApiSummary(
        tuple(latency[:_MOST_APIS]),
        max(0, len(latency) - _MOST_APIS),
        tuple(errors[:_MOST_ERRORS]),
        max(0, len(errors) - _MOST_ERRORS),
        tuple(throttled[:_MOST_THROTTLED]),
        max(0, len(throttled) - _MOST_THROTTLED),
    )


def _latency(lake: Lake, scope: Scope) -> list[ApiLatency]:
    by_api: dict[tuple[str, bool], ApiLatency] = {}
    halves: Counter[tuple[str, bool]] = Counter()
    timed: Counter[tuple[str, bool]] = Counter()
    for row in rows(lake, "api_latency", _LATENCY, scope.minute("minute_at")):
        key = (row["api"] or "", bool(row["long_poll"]))
        api = by_api.setdefault(key, ApiLatency(*key))
        calls = row["calls"] or 0
        api.calls += calls
        api.unanswered += row["unanswered"] or 0
        api.errors += row["errors"] or 0
        api.bytes += (row["request_bytes"] or 0) + (row["response_bytes"] or 0)
        if row["p50_us"] is not None:
            halves[key] += row["p50_us"] * calls
            timed[key] += calls
        if row["max_us"] is not None and row["max_us"] > (-1 if api.max_us is None else api.max_us):
            api.slowest_exchange_id = row["slowest_exchange_id"]
        for name in ("p95_us", "p99_us", "max_us"):
            if row[name] is not None:
                setattr(api, name, max(getattr(api, name) or 0, row[name]))
    for key, calls in timed.items():
        by_api[key].p50_us = round(halves[key] / calls) if calls else None
    return sorted(by_api.values(), key=lambda api: (api.long_poll, -api.calls, api.api))


def _errors(lake: Lake, scope: Scope) -> list[ApiError]:
    by_error: dict[tuple[str, int], ApiError] = {}
    clients: dict[tuple[str, int], Counter[str]] = {}
    for row in rows(lake, "api_errors", _ERRORS, scope.minute("minute_at")):
        key = (row["api"] or "", row["error_code"] or 0)
        error = by_error.setdefault(key, ApiError(key[0], row["error"] or str(key[1]), key[1]))
        error.calls += row["calls"] or 0
        clients.setdefault(key, Counter())[row["client_id"] or ""] += row["calls"] or 0
        if row["first_at"] is not None and (error.first_at is None or row["first_at"] < error.first_at):
            error.first_at, error.first_exchange_id = row["first_at"], row["first_exchange_id"]
        if row["last_at"] is not None and (error.last_at is None or row["last_at"] > error.last_at):
            error.last_at = row["last_at"]
    for key, error in by_error.items():
        most = sorted(clients[key].items(), key=lambda item: (-item[1], item[0]))
        error.clients = [client for client, _ in most[:MOST_CLIENTS]]
        error.clients_left_out = len(most) - len(error.clients)
    return sorted(by_error.values(), key=lambda error: (-error.calls, error.api, error.error_code))


def _throttling(lake: Lake, scope: Scope) -> list[Throttled]:
    by_client: dict[tuple[str, str], Throttled] = {}
    for row in rows(lake, "throttling", _THROTTLING, scope.minute("minute_at")):
        key = (row["client_id"] or "", row["api"] or "")
        throttled = by_client.setdefault(key, Throttled(*key))
        throttled.calls += row["calls"] or 0
        throttled.throttled += row["throttled"] or 0
        throttled.throttle_ms += row["throttle_ms"] or 0
        if (row["max_throttle_ms"] or 0) > throttled.max_throttle_ms:
            throttled.max_throttle_ms, throttled.longest_exchange_id = (
                row["max_throttle_ms"],
                row["longest_exchange_id"],
            )
    return sorted(
        by_client.values(), key=lambda throttled: (-throttled.throttle_ms, throttled.client_id, throttled.api)
    )
