"""The rules about APIs, clients and the recording: thresholds with reasons, the summary and advice of each finding."""

from kafkascope.formatting import count, file_name, first_names, percent, span
from kafkascope.health.findings.episodes import Episode
from kafkascope.health.findings.rules.rule import Limits, Rule, SeverityAndSummary, Threshold
from kafkascope.health.findings.words import name_counts, names, quoted, words_with_counts

# A whole recording gets one finding, not one per gap.
_FOREVER_US = 1 << 62

# Responses that are part of how the protocol works: the client is redirected or retries, and continues. For any API, or
# for one.
PASSING = frozenset(
    {
        "REBALANCE_IN_PROGRESS",  # the member rejoins
        "UNKNOWN_MEMBER_ID",  # after a restart, or after the session timeout: the member rejoins
        "MEMBER_ID_REQUIRED",  # the first JoinGroup gets its member id this way (KIP-394)
        "ILLEGAL_GENERATION",
        "FENCED_MEMBER_EPOCH",
        "STALE_MEMBER_EPOCH",
        "UNRELEASED_INSTANCE_ID",
        "UNSTABLE_OFFSET_COMMIT",
        "NOT_COORDINATOR",
        "COORDINATOR_NOT_AVAILABLE",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "NOT_LEADER_OR_FOLLOWER",
        "LEADER_NOT_AVAILABLE",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "OFFSET_NOT_AVAILABLE",
        "NOT_CONTROLLER",
        "FETCH_SESSION_ID_NOT_FOUND",
        "INVALID_FETCH_SESSION_EPOCH",
        "FETCH_SESSION_TOPIC_ID_ERROR",
        "CONCURRENT_TRANSACTIONS",
        "SNAPSHOT_NOT_FOUND",
        "ELECTION_NOT_NEEDED",
        "Metadata UNKNOWN_TOPIC_OR_PARTITION",  # until the topic exists
        "CreateTopics TOPIC_ALREADY_EXISTS",
        "ApiVersions UNSUPPORTED_VERSION",  # the requested version is too new: the client retries with an older one
        "OffsetFetch UNKNOWN_TOPIC_OR_PARTITION",
        "Fetch OFFSET_OUT_OF_RANGE",  # auto.offset.reset
    }
)


def _error_rate(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    errors, calls = episode.number("errors"), max(1, episode.number("calls"))
    share = errors / calls
    if errors < limits["errors"] or share < limits["share"]:
        return None
    critical = share >= limits["critical_share"] and errors >= limits["critical_errors"]
    summary = (
        f"{_api(episode)} failed in {errors:,.0f} of {calls:,.0f} calls ({percent(share)}): "
        f"{name_counts(episode.named['error_names'], 3)}."
    )
    return ("critical" if critical else "warning"), summary


def _passing_errors(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    errors, calls = episode.number("errors"), max(1, episode.number("calls"))
    if errors < limits["errors"]:
        return None
    lasting = episode.length_ms >= limits["warning_minutes"] * 60_000 and errors / calls >= limits["warning_share"]
    summary = (
        f"{_api(episode)} was redirected or retried in {errors:,.0f} of {calls:,.0f} calls: "
        f"{name_counts(episode.named['error_names'], 3)}."
    )
    return ("warning" if lasting else "info"), summary


def _unanswered(episode: Episode, limits: Limits) -> str | None:
    missing, calls = episode.number("unanswered"), max(1, episode.number("calls"))
    if missing < limits["calls"] or missing / calls < limits["share"]:
        return None
    return f"{_api(episode)} got no response to {missing:,.0f} of {calls:,.0f} calls ({percent(missing / calls)})."


def _slow(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    worst = episode.number("p99_ms")
    if episode.number("minutes") < limits["minutes"]:
        return None
    summary = (
        f"{_api(episode)}: p99 latency {span(worst)}, over {episode.number('minutes'):,.0f} min with "
        f"{count(episode.number('calls'), 'call')}."
    )
    return ("critical" if worst >= limits["critical_ms"] else "warning"), summary


def _throttled(episode: Episode, limits: Limits) -> str | None:
    total = episode.number("throttle_ms")
    if total < limits["ms"]:
        return None
    return (
        f"Client {quoted(episode.subject)} was throttled in {count(episode.number('throttled'), 'response')} for "
        f"{span(total)} in all, at most {span(episode.number('max_throttle_ms'))} at a time: "
        f"{name_counts(episode.named['apis'], 3)}."
    )


def _versions_dropped(episode: Episode, limits: Limits) -> str | None:
    calls = episode.number("calls")
    if calls < limits["calls"]:
        return None
    releases = first_names(sorted(episode.named["last_releases"]), 5)
    return (
        f"{quoted(episode.subject)} uses versions that the newest release no longer serves, in "
        f"{count(calls, 'call')}: {names(episode.named['versions'])}; last served by Kafka {releases}."
    )


def _unknown(episode: Episode, limits: Limits) -> str | None:
    calls = episode.number("calls")
    if calls < limits["calls"]:
        return None
    clients = names(episode.named["clients"])
    return f"{quoted(episode.subject)} isn't in any known release; {count(calls, 'call')} by {clients}."


def _api(episode: Episode) -> str:
    """`Metadata`, `Metadata` at `10.0.0.1:9092`."""
    api, at, address = episode.subject.partition(" at ")
    return f"{quoted(api)}{at}{quoted(address)}" if at else quoted(api)


def _recording(episode: Episode) -> str:
    """The file of the recording with its folder; the subject is its whole path."""
    first, _, others = episode.subject.rpartition(" and ")
    if others.endswith(" more") and first:
        return f"{quoted(file_name(first))} and {others}"
    return quoted(file_name(episode.subject))


def _most(episode: Episode) -> str:
    """Which of several recordings contributes most."""
    ordered = sorted(episode.named["recordings"].items(), key=lambda item: (-item[1], item[0]))
    return f"; {quoted(file_name(ordered[0][0]))} has most of it" if len(ordered) > 1 else ""


def _tls(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    tls, all_bytes = episode.number("tls_bytes"), max(1, episode.number("tcp_bytes"))
    share = tls / all_bytes
    if share < limits["share"]:
        return None
    summary = f"{percent(share)} of the bytes of {_recording(episode)} are TLS and couldn't be read{_most(episode)}."
    return ("warning" if share >= limits["warning_share"] else "info"), summary


def _lost(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    lost = episode.number("lost_bytes")
    share = lost / max(1, lost + episode.number("tcp_bytes"))
    if share < limits["share"]:
        return None
    summary = (
        f"{count(lost, 'byte')} of the connections in {_recording(episode)} {'is' if lost == 1 else 'are'} missing "
        f"({percent(share)}){_most(episode)}."
    )
    much = share >= limits["warning_share"] and lost >= limits["warning_bytes"]
    return ("warning" if much else "info"), summary


def _unreadable(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    bad, frames = episode.number("undecoded"), max(1, episode.number("frames"))
    if episode.number("places") < limits["places"]:
        return None
    summary = (
        f"{count(episode.number('places'), 'place')} of {_recording(episode)} couldn't be read: "
        f"{words_with_counts(episode.named['kinds'])}{_most(episode)}."
    )
    return ("warning" if bad >= limits["warning_share"] * frames and bad else "info"), summary


RULES = (
    Rule(
        "api_error_rate",
        "warning; critical from `critical_share` and `critical_errors` on",
        "api",
        "Calls of an API fail with errors that aren't part of how the protocol works. Errors with a rule of their own "
        "aren't counted here. Counted over minutes with such errors.",
        ("api_errors", "api_latency"),
        (
            Threshold("share", 0.05, "of the calls", "clients retry: one in twenty shows in their latency"),
            Threshold("errors", 5, "errors", "fewer can be typing mistakes"),
            Threshold("critical_share", 0.5, "of the calls", "more fail than succeed"),
            Threshold("critical_errors", 100, "errors", "that many calls aren't an experiment"),
        ),
        "Cause and remedy of each: `kafkascope error NAME`; the table `api_errors` has them by client and broker. "
        "`…_AUTHORIZATION_FAILED`: look at the ACLs, `kafka-acls.sh --bootstrap-server BROKER --list`. "
        "`NOT_ENOUGH_REPLICAS`: compare `min.insync.replicas` with the brokers that run.",
        _error_rate,
    ),
    Rule(
        "api_passing_errors",
        "info; warning from `warning_minutes` and `warning_share` on",
        "api",
        "Responses that redirect clients or make them retry, usual after a restart or a rebalance: "
        "`REBALANCE_IN_PROGRESS`, `UNKNOWN_MEMBER_ID`, `NOT_COORDINATOR`, `NOT_LEADER_OR_FOLLOWER` and others. They "
        "pass.",
        ("api_errors", "api_latency"),
        (
            Threshold("errors", 20, "errors", "each client has a few at every restart of a broker"),
            Threshold(
                "warning_minutes",
                5,
                "minutes",
                "`metadata.max.age.ms`: by then a client refreshes its metadata by itself",
            ),
            Threshold("warning_share", 0.5, "of the calls", "more are redirected than served"),
        ),
        "Compare with restarts, elections and rebalances of that time. If they last, a client doesn't refresh "
        "its metadata, or a coordinator doesn't load (see the broker's log).",
        _passing_errors,
    ),
    Rule(
        "api_unanswered",
        "warning",
        "api",
        "Requests without a response in the recording. Long polls, which wait by design, are left out: each recording "
        "ends with some of them open.",
        ("api_latency",),
        (
            Threshold("calls", 5, "calls", "the end of a recording cuts off a few"),
            Threshold(
                "share", 0.01, "of the calls of those minutes", "clients wait `request.timeout.ms` (30 s) for each"
            ),
        ),
        "Look at `recording_lost` first: the responses may be missing from the recording. If they aren't, the broker "
        "hangs or closed the connection: look at its log and its request queue (metrics `RequestQueueSize`, "
        "`RequestHandlerAvgIdlePercent`).",
        _unanswered,
    ),
    Rule(
        "api_slow",
        "warning; critical from `critical_ms` on",
        "api",
        "Calls take long that don't wait by design. Long polls are left out.",
        ("api_latency",),
        (
            Threshold(
                "ms",
                1000,
                "ms at the 99th percentile of a minute",
                "healthy brokers take milliseconds; the default of `replica.fetch.wait.max.ms`, the longest wait for "
                "`acks=all`, is 500",
            ),
            Threshold("critical_ms", 30_000, "ms", "`request.timeout.ms`: clients stop waiting and retry"),
            Threshold("calls", 20, "calls in the minute", "with fewer, one call is the percentile"),
            Threshold("minutes", 1, "minutes", "raise it to ignore short spikes"),
        ),
        "The broker's request log, or its `TotalTimeMs` metrics by request, show where the time goes: "
        "`RequestQueueTimeMs` (`num.io.threads`), `LocalTimeMs` (disk), `RemoteTimeMs` (replicas), "
        "`ResponseQueueTimeMs` (`num.network.threads`).",
        _slow,
    ),
    Rule(
        "client_throttled",
        "warning",
        "client",
        "Brokers throttled a client by its quota.",
        ("throttling",),
        (Threshold("ms", 1000, "ms in all", "`quota.window.size.seconds` (1 s): a whole window"),),
        "Quotas of clients (users are another entity type): `kafka-configs.sh --bootstrap-server BROKER --describe "
        "--entity-type clients`. They are `producer_byte_rate`, `consumer_byte_rate`, `request_percentage` and "
        "`controller_mutation_rate`.",
        _throttled,
    ),
    Rule(
        "client_versions_dropped",
        "warning",
        "client",
        "A client uses API versions that the newest release doesn't serve. After the upgrade it fails if it has no "
        "newer ones; a client that has them may use old ones only because its broker is old.",
        ("client_versions",),
        (Threshold("calls", 1, "calls", "the one call that fails can be the one that connects"),),
        "Upgrade the client's library before the brokers (4.0 dropped what clients before 2.1 need, KIP-896). "
        "Which release has which version: `kafkascope changelog API`.",
        _versions_dropped,
        _FOREVER_US,
    ),
    Rule(
        "api_unknown",
        "info",
        "api",
        "Calls of an API key or version that isn't in any known release: a vendor's own, a newer release, or bytes "
        "that aren't Kafka.",
        ("client_versions",),
        (Threshold("calls", 1, "calls", "nothing is known about them"),),
        "Find out what the client is. If it is a newer Kafka, upgrade kafkascope.",
        _unknown,
        _FOREVER_US,
    ),
    Rule(
        "recording_tls",
        "info; warning from `warning_share` on",
        "recording",
        "A large part of a recording is encrypted, so health is judged by the rest. Files that follow each other "
        "within five minutes are one recording; the figures name those with the most encrypted bytes.",
        ("captures",),
        (
            Threshold("share", 0.05, "of the bytes", "less is a client or two"),
            Threshold("warning_share", 0.5, "of the bytes", "most of what happened isn't seen"),
        ),
        "Use the broker's request log (logger `kafka.request.logger` at DEBUG), which is written after decryption, or "
        "record a plaintext listener.",
        _tls,
        _FOREVER_US,
    ),
    Rule(
        "recording_lost",
        "info; warning from `warning_share` and `warning_bytes` on",
        "recording",
        "Packets are missing, so that responses seem lost and deliveries seem unfinished. Files that follow each other "
        "within five minutes are one recording.",
        ("captures",),
        (
            Threshold("share", 0.0001, "of the bytes", "each gap can hide the end of a delivery"),
            Threshold("warning_share", 0.01, "of the bytes", "what is counted here is off by as much"),
            Threshold("warning_bytes", 10_000, "bytes", "less is a frame or two of a small file"),
        ),
        "Record whole packets of the Kafka ports only, with a larger buffer and to a faster disk: `tcpdump -i any -s "
        "0 -B 65536 -w FILE port 9092`. Compare with the packets that tcpdump reports as dropped by the kernel.",
        _lost,
        _FOREVER_US,
    ),
    Rule(
        "recording_unreadable",
        "info; warning from `warning_share` on",
        "recording",
        "Messages or parts of a recording couldn't be read. Files that follow each other within five minutes "
        "are one recording.",
        ("quarantine", "captures"),
        (
            Threshold("places", 1, "places", "nothing is left out silently"),
            Threshold("warning_share", 0.01, "of the frames undecoded", "what is counted here is off by as much"),
        ),
        "The table quarantine has packet, message and reason of each. To see the exchanges: `kafkascope read FILE`.",
        _unreadable,
        _FOREVER_US,
    ),
)
