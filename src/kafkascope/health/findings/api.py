"""Collects signs of trouble from the marts about APIs and clients, reading each row once."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from kafkascope.health.findings.episodes import MINUTE_US, Signs
from kafkascope.health.findings.rules.api import PASSING
from kafkascope.health.findings.rules.rule import Limits

Row = Mapping[str, Any]
Calls = Counter[tuple[str, int]]  # of an API in a minute

_SHARE_APIS = frozenset({"ShareFetch", "ShareAcknowledge"})
_SESSION = frozenset({"SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH", "SHARE_SESSION_LIMIT_REACHED"})
_TOPOLOGY = frozenset({"STREAMS_INVALID_TOPOLOGY", "STREAMS_INVALID_TOPOLOGY_EPOCH", "STREAMS_TOPOLOGY_FENCED"})
_NO_CLIENT_ID = "without a client id"
# These count errors per API, the others per client.
BY_API = frozenset({"api_error_rate", "api_passing_errors"})


def latencies(rows: Iterable[Row], signs: Signs, limits: Mapping[str, Limits]) -> Calls:
    """Returns the number of calls, by which errors are judged."""
    calls: Calls = Counter()
    slow = limits["api_slow"]
    for row in rows:
        api, at, number = row["api"], row["minute_at"], row["calls"]
        calls[api, at // MINUTE_US] += number
        if row["long_poll"]:
            continue
        end, broker = at + MINUTE_US, row["broker_address"]
        if row["unanswered"]:
            episode = signs.of("api_unanswered", api, at, end)
            episode.add("unanswered", row["unanswered"])
            episode.add("calls", number)
            episode.name("brokers", broker, row["unanswered"])
        p99_us = row["p99_us"]
        if p99_us is not None and p99_us >= slow["ms"] * 1000 and number >= slow["calls"]:
            episode = signs.of("api_slow", f"{api} at {broker}", at, end, ("api", api))
            episode.add("minutes")
            episode.add("calls", number)
            episode.most("p99_ms", p99_us // 1000)
            episode.most("max_ms", row["max_us"] // 1000)
            episode.prove(at, row["slowest_exchange_id"])
    return calls


def errors(rows: Iterable[Row], calls: Calls, signs: Signs) -> None:
    counted: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
    for row in rows:
        api, error, client, number = *named_error(row), row["calls"]
        since, until = row["first_at"], row["last_at"]
        rule = rule_of_error(api, error)
        if rule not in BY_API:
            episode = signs.of(rule, client, since, until)
            episode.add("calls", number)
            episode.name("errors", error, number)
            episode.name("brokers", row["broker_address"], number)
            episode.prove(since, row["first_exchange_id"])
            continue
        minute = row["minute_at"]
        episode = signs.of(rule, api, minute)
        episode.reach(max(minute, since), until)
        episode.add("errors", number)
        episode.name("error_names", error, number)
        episode.name("clients", client, number)
        episode.name("brokers", row["broker_address"], number)
        episode.prove(since, row["first_exchange_id"])
        key = (api, minute // MINUTE_US)
        if key not in counted[rule]:
            counted[rule].add(key)
            episode.add("calls", calls[key])


def named_error(row: Row) -> tuple[str, str, str]:
    """API, error and client of a row of `api_errors`, worded as in findings."""
    error = row["error"] or f"error {row['error_code']}"
    return row["api"] or "an unknown API", error, row["client_id"] or _NO_CLIENT_ID


def rule_of_error(api: str, error: str) -> str:
    """The rule that counts an error of an API."""
    if api in _SHARE_APIS:
        if error == "INVALID_RECORD_STATE":
            return "share_refused_acknowledgements"
        if error in _SESSION:
            return "share_session_reset"
    if error in _TOPOLOGY:
        return "streams_topology_refused"
    return "api_passing_errors" if error in PASSING or f"{api} {error}" in PASSING else "api_error_rate"


def throttling(rows: Iterable[Row], signs: Signs) -> None:
    for row in rows:
        at = row["minute_at"]
        episode = signs.of("client_throttled", row["client_id"] or _NO_CLIENT_ID, at, at + MINUTE_US)
        episode.add("throttled", row["throttled"])
        episode.add("throttle_ms", row["throttle_ms"])
        episode.most("max_throttle_ms", row["max_throttle_ms"])
        episode.name("apis", row["api"], row["throttled"])
        episode.name("brokers", row["broker_address"], row["throttled"])
        episode.prove(at, row["longest_exchange_id"])


def client_versions(rows: Iterable[Row], signs: Signs) -> None:
    for row in rows:
        if row["in_newest_release"]:
            continue
        since, until = row["first_at"] or 0, row["last_at"] or row["first_at"] or 0
        client = row["client_software"] or row["client_id"] or _NO_CLIENT_ID
        api = row["api"] or f"API key {row['api_key']}"
        version = f"{api} v{row['api_version']}"
        if row["first_release"] is None:
            episode = signs.of("api_unknown", version, since, until)
            episode.name("clients", client, row["calls"])
        else:
            episode = signs.of("client_versions_dropped", client, since, until)
            episode.name("versions", version, row["calls"])
            episode.name("last_releases", row["last_release"], row["calls"])
            episode.name("client_ids", row["client_id"], row["calls"])
        episode.add("calls", row["calls"])
        episode.add("connections", row["connections"])
        episode.prove(until, row["last_exchange_id"])
