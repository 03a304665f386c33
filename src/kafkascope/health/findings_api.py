"""Rows of the marts about APIs and clients, of `captures` and of `quarantine` in, signs of trouble out; each row is
looked at once."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kafkascope.health.findings_api_rules import FOREVER_US, PASSING
from kafkascope.health.findings_episodes import MINUTE_US, Signs
from kafkascope.health.findings_rule import Limits
from kafkascope.health.findings_words import count

Row = Mapping[str, Any]
Calls = Counter[tuple[str, int]]  # of an API in a minute

_SHARE_APIS = frozenset({"ShareFetch", "ShareAcknowledge"})
_SESSION = frozenset({"SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH", "SHARE_SESSION_LIMIT_REACHED"})
_TOPOLOGY = frozenset({"STREAMS_INVALID_TOPOLOGY", "STREAMS_INVALID_TOPOLOGY_EPOCH", "STREAMS_TOPOLOGY_FENCED"})
NO_CLIENT_ID = "without a client id"
A_RECORDING = "a recording"
# Kinds of `captures`.
OBSERVED, PLAIN = "observe", "frames"


def latencies(rows: Iterable[Row], signs: Signs, limits: Mapping[str, Limits]) -> Calls:
    """How many calls there were comes back: errors are judged by it."""
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
        api, error, number = row["api"] or "an unknown API", row["error"] or f"error {row['error_code']}", row["calls"]
        client, since, until = row["client_id"] or NO_CLIENT_ID, row["first_at"], row["last_at"]
        own = _own_rule(api, error)
        if own is not None:
            episode = signs.of(own, client, since, until)
            episode.add("calls", number)
            episode.name("errors", error, number)
            episode.name("brokers", row["broker_address"], number)
            episode.prove(since, row["first_exchange_id"])
            continue
        rule = "api_passing_errors" if error in PASSING or f"{api} {error}" in PASSING else "api_error_rate"
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


def _own_rule(api: str, error: str) -> str | None:
    if api in _SHARE_APIS:
        if error == "INVALID_RECORD_STATE":
            return "share_refused_acknowledgements"
        if error in _SESSION:
            return "share_session_reset"
    return "streams_topology_refused" if error in _TOPOLOGY else None


def throttling(rows: Iterable[Row], signs: Signs) -> None:
    for row in rows:
        at = row["minute_at"]
        episode = signs.of("client_throttled", row["client_id"] or NO_CLIENT_ID, at, at + MINUTE_US)
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
        client = row["client_software"] or row["client_id"] or NO_CLIENT_ID
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


@dataclass(frozen=True, slots=True)
class Recorded:
    """All recordings, judged as one: into how many files they were cut does not matter. `subject` is what findings call
    them; `first_at` is by name, `until` when the last of them ends."""

    subject: str
    first_at: Mapping[str, int]
    frames: int
    until: int | None


def captures(rows: Iterable[Row], signs: Signs) -> Recorded:
    concerned = {"recording_tls": _Concerned("tls_bytes"), "recording_lost": _Concerned("lost_bytes")}
    first_at: dict[str, int] = {}
    frames: Counter[tuple[str, str]] = Counter()
    recorded: set[str] = set()
    tcp_bytes, until = 0, None
    for row in rows:
        uri, kind, number = row["capture_uri"], row["kind"], row["frames"] or 0
        first_at[uri] = min(row["first_at"] or FOREVER_US, first_at.get(uri, FOREVER_US))
        if row["last_at"]:
            until = max(row["last_at"], until or 0)
        # Rows of a file of plain frames that has grown have all of its frames each.
        frames[uri, kind] = max(frames[uri, kind], number) if kind == PLAIN else frames[uri, kind] + number
        # An observer's own calls are no recording of what others do.
        if kind != OBSERVED and (row["tcp_bytes"] or row["lost_bytes"]):
            recorded.add(uri)
            tcp_bytes += row["tcp_bytes"] or 0
            for some in concerned.values():
                some.add(row)
    for rule, some in concerned.items():
        if some.uris:
            episode = signs.of(rule, _subject(recorded), some.from_at, some.to_at)
            episode.add(some.column, some.uris.total())
            episode.add("tcp_bytes", tcp_bytes)
            for uri, number in some.uris.items():
                episode.name("recordings", uri, number)
    known = {uri: at for uri, at in first_at.items() if at < FOREVER_US}
    return Recorded(_subject(first_at), known, frames.total(), until)


class _Concerned:
    """Recordings that have some of what a column counts: how much of it, and their time."""

    def __init__(self, column: str) -> None:
        self.column, self.uris = column, Counter[str]()
        self.from_at, self.to_at = FOREVER_US, 0

    def add(self, row: Row) -> None:
        if row[self.column]:
            self.uris[row["capture_uri"]] += row[self.column]
            self.from_at = min(self.from_at, row["first_at"] or 0)
            self.to_at = max(self.to_at, row["last_at"] or 0)


def _subject(uris: Collection[str]) -> str:
    return count(len(uris), "recording") if len(uris) > 1 else next(iter(uris), A_RECORDING)


def quarantine(rows: Iterable[Row], recorded: Recorded, signs: Signs) -> None:
    episode = None
    # Of what has no time, as a file that could not be read at all.
    earliest = min(recorded.first_at.values(), default=0)
    for row in rows:
        uri = row["capture_uri"] or A_RECORDING
        at = row["recorded_at"] or recorded.first_at.get(uri, earliest)
        episode = signs.of("recording_unreadable", recorded.subject, at)
        episode.add("places")
        episode.add("undecoded", row["kind"] == "undecoded")
        episode.name("kinds", row["message"] or row["kind"])
        episode.name("recordings", uri)
        episode.prove(at, row["exchange_id"])
    if episode is not None:
        episode.add("frames", recorded.frames)
