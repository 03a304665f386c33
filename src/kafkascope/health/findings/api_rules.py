"""The rules about APIs, clients and the recording itself: thresholds with their reasons, what each says, what to do."""

from kafkascope.formatting import count, percent, span
from kafkascope.health.findings.episodes import Episode
from kafkascope.health.findings.rule import Limits, Rule, SeverityAndSummary, Threshold
from kafkascope.health.findings.words import name_counts, names

# What is told of a whole recording is no incident that ends and comes back.
_FOREVER_US = 1 << 62

# Answers by which the protocol works: the client looks again, and goes on. In an answer to any API, or to one.
PASSING = frozenset(
    {
        "REBALANCE_IN_PROGRESS",  # the member joins again
        "UNKNOWN_MEMBER_ID",  # after a restart, or after the session timeout: the member joins again
        "MEMBER_ID_REQUIRED",  # the first JoinGroup gets its member id by it (KIP-394)
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
        "Metadata UNKNOWN_TOPIC_OR_PARTITION",  # until the topic is created
        "CreateTopics TOPIC_ALREADY_EXISTS",
        "ApiVersions UNSUPPORTED_VERSION",  # asked too new: the client asks again with an older one
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
        f"{episode.subject} failed in {errors:,.0f} of {count(calls, 'call')} ({percent(share)}): "
        f"{name_counts(episode.named['error_names'], 3)}."
    )
    return ("critical" if critical else "warning"), summary


def _passing_errors(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    errors, calls = episode.number("errors"), max(1, episode.number("calls"))
    if errors < limits["errors"]:
        return None
    lasting = episode.length_ms >= limits["warning_minutes"] * 60_000 and errors / calls >= limits["warning_share"]
    summary = (
        f"{episode.subject} was told to look again in {errors:,.0f} of {count(calls, 'call')}, over "
        f"{span(episode.length_ms)}: {name_counts(episode.named['error_names'], 3)}."
    )
    return ("warning" if lasting else "info"), summary


def _unanswered(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    missing, calls = episode.number("unanswered"), max(1, episode.number("calls"))
    if missing < limits["calls"] or missing / calls < limits["share"]:
        return None
    summary = (
        f"{episode.subject} got no answer to {missing:,.0f} of {count(calls, 'call')} ({percent(missing / calls)})."
    )
    return "warning", summary


def _slow(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    worst = episode.number("p99_ms")
    if episode.number("minutes") < limits["minutes"]:
        return None
    summary = (
        f"One in a hundred calls of {episode.subject} took {span(worst)} or longer, in "
        f"{count(episode.number('minutes'), 'minute')} with {count(episode.number('calls'), 'call')}."
    )
    return ("critical" if worst >= limits["critical_ms"] else "warning"), summary


def _throttled(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    total = episode.number("throttle_ms")
    if total < limits["ms"]:
        return None
    summary = (
        f"Client {episode.subject} was throttled in {count(episode.number('throttled'), 'answer')}, for {span(total)} "
        f"in "
        f"all and {span(episode.number('max_throttle_ms'))} at most: {name_counts(episode.named['apis'], 3)}."
    )
    return "warning", summary


def _versions_dropped(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    calls = episode.number("calls")
    if calls < limits["calls"]:
        return None
    releases = names(episode.named["last_releases"])
    summary = (
        f"{episode.subject} speaks versions that the newest release no longer serves, in {count(calls, 'call')}: "
        f"{names(episode.named['versions'])}; last served by {releases}."
    )
    return "warning", summary


def _unknown(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    calls = episode.number("calls")
    if calls < limits["calls"]:
        return None
    clients = names(episode.named["clients"])
    summary = f"{episode.subject} is in no release that the catalog knows; {count(calls, 'call')} by {clients}."
    return "info", summary


def _most(episode: Episode) -> str:
    """Which of several recordings has most of it."""
    ordered = sorted(episode.named["recordings"].items(), key=lambda item: (-item[1], item[0]))
    return f"; {ordered[0][0]} has most of it" if len(ordered) > 1 else ""


def _tls(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    tls, all_bytes = episode.number("tls_bytes"), max(1, episode.number("tcp_bytes"))
    share = tls / all_bytes
    if share < limits["share"]:
        return None
    summary = f"{percent(share)} of the bytes of {episode.subject} are TLS and could not be read{_most(episode)}."
    return ("warning" if share >= limits["warning_share"] else "info"), summary


def _lost(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    lost = episode.number("lost_bytes")
    share = lost / max(1, lost + episode.number("tcp_bytes"))
    if share < limits["share"]:
        return None
    summary = (
        f"{count(lost, 'byte')} of the connections in {episode.subject} {'is' if lost == 1 else 'are'} missing "
        f"({percent(share)}){_most(episode)}."
    )
    much = share >= limits["warning_share"] and lost >= limits["warning_bytes"]
    return ("warning" if much else "info"), summary


def _unreadable(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    bad, frames = episode.number("undecoded"), max(1, episode.number("frames"))
    if episode.number("places") < limits["places"]:
        return None
    summary = (
        f"{count(episode.number('places'), 'place')} of {episode.subject} could not be read: "
        f"{name_counts(episode.named['kinds'])}{_most(episode)}."
    )
    return ("warning" if bad >= limits["warning_share"] * frames and bad else "info"), summary


RULES = (
    Rule(
        "api_error_rate",
        "warning; critical from `critical_share` and `critical_errors` on",
        "api",
        "Calls of an API fail with errors that are no part of how the protocol works. Errors that have a rule of "
        "their own are told there. Counted over minutes with such errors.",
        ("api_errors", "api_latency"),
        (
            Threshold("share", 0.05, "of the calls", "clients retry: one in twenty shows in their latency"),
            Threshold("errors", 5, "errors", "fewer are somebody's typing"),
            Threshold("critical_share", 0.5, "of the calls", "more fail than succeed"),
            Threshold("critical_errors", 100, "errors", "that many calls are no experiment"),
        ),
        "`kafkascope error NAME` tells the cause and remedy of each; api_errors has them by client and broker. "
        "…_AUTHORIZATION_FAILED: kafka-acls.sh --list. NOT_ENOUGH_REPLICAS: min.insync.replicas against the brokers "
        "that are up.",
        _error_rate,
    ),
    Rule(
        "api_passing_errors",
        "info; warning from `warning_minutes` and `warning_share` on",
        "api",
        "Answers that make clients look again, as a restart or a rebalance brings them: REBALANCE_IN_PROGRESS, "
        "UNKNOWN_MEMBER_ID, NOT_COORDINATOR, NOT_LEADER_OR_FOLLOWER and their like. They pass.",
        ("api_errors", "api_latency"),
        (
            Threshold("errors", 20, "errors", "each client has a few at every restart of a broker"),
            Threshold(
                "warning_minutes", 5, "minutes", "metadata.max.age.ms: by then a client has asked anew by itself"
            ),
            Threshold("warning_share", 0.5, "of the calls", "more are sent away than served"),
        ),
        "Compare with restarts, elections and rebalances of that time. If they last: a client that does not refresh "
        "its metadata, or a coordinator that does not load (see the broker's log).",
        _passing_errors,
    ),
    Rule(
        "api_unanswered",
        "warning",
        "api",
        "Requests without an answer in the recording. Those that may wait by design are left out: each recording ends "
        "with some of them open.",
        ("api_latency",),
        (
            Threshold("calls", 5, "calls", "a recording that ends cuts a few"),
            Threshold(
                "share", 0.01, "of the calls of those minutes", "clients wait request.timeout.ms (30 s) for each"
            ),
        ),
        "Look at recording_lost first: the answers may be what it lacks. Else the broker hung up or hangs: its log, "
        "its request queue (metrics RequestQueueSize, RequestHandlerAvgIdlePercent).",
        _unanswered,
    ),
    Rule(
        "api_slow",
        "warning; critical from `critical_ms` on",
        "api",
        "Calls that wait for nothing by design take long. Long polls are left out.",
        ("api_latency",),
        (
            Threshold(
                "ms",
                1000,
                "ms at the 99th percentile of a minute",
                "healthy brokers take milliseconds; the default of replica.fetch.wait.max.ms, the longest wait behind "
                "acks=all, is 500",
            ),
            Threshold("critical_ms", 30_000, "ms", "request.timeout.ms: clients give up and send again"),
            Threshold("calls", 20, "calls in the minute", "with fewer, one call is the percentile"),
            Threshold("minutes", 1, "minutes", "raise it to leave short spikes out"),
        ),
        "The broker's request log, or its TotalTimeMs metrics by request, say where the time goes: RequestQueueTimeMs "
        "(num.io.threads), LocalTimeMs (disk), RemoteTimeMs (replicas), ResponseQueueTimeMs (num.network.threads).",
        _slow,
    ),
    Rule(
        "client_throttled",
        "warning",
        "client",
        "Brokers held a client back by quota.",
        ("throttling",),
        (Threshold("ms", 1000, "ms in all", "quota.window.size.seconds (1 s): a whole window"),),
        "kafka-configs.sh --bootstrap-server BROKER --describe --entity-type clients (and users) shows the quotas: "
        "producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate.",
        _throttled,
    ),
    Rule(
        "client_versions_dropped",
        "warning",
        "client",
        "A client uses API versions that the newest release does not serve: after the upgrade it fails, if it cannot "
        "speak newer ones. A client that could speak newer ones may do so only because its broker is old.",
        ("client_versions",),
        (Threshold("calls", 1, "calls", "one call that fails can be the one that connects"),),
        "Upgrade the client's library before the brokers (4.0 dropped what clients before 2.1 need, KIP-896). "
        "`kafkascope changelog API` shows which release has which version.",
        _versions_dropped,
        _FOREVER_US,
    ),
    Rule(
        "api_unknown",
        "info",
        "api",
        "Calls of an API key or version that is in no release: a vendor's own, a newer release, or bytes that are no "
        "Kafka.",
        ("client_versions",),
        (Threshold("calls", 1, "calls", "nothing can be told about them"),),
        "Find out what the client is. If it is a newer Kafka, upgrade kafkascope.",
        _unknown,
        _FOREVER_US,
    ),
    Rule(
        "recording_tls",
        "info; warning from `warning_share` on",
        "recording",
        "Much of a recording is encrypted: health is judged by the rest. Files that follow each other within five "
        "minutes are one recording; the figures name those with most of it.",
        ("captures",),
        (
            Threshold("share", 0.05, "of the bytes", "less is a client or two"),
            Threshold("warning_share", 0.5, "of the bytes", "most of what happened is not seen"),
        ),
        "Use the broker's request log (logger kafka.request.logger at DEBUG), which is written behind TLS, or record "
        "a plaintext listener.",
        _tls,
        _FOREVER_US,
    ),
    Rule(
        "recording_lost",
        "info; warning from `warning_share` and `warning_bytes` on",
        "recording",
        "Packets are missing: answers seem lost and deliveries unfinished that were not. Files that follow each other "
        "are one recording, as in recording_tls.",
        ("captures",),
        (
            Threshold("share", 0.0001, "of the bytes", "each gap can hide the end of a delivery"),
            Threshold("warning_share", 0.01, "of the bytes", "what is counted here is off by as much"),
            Threshold("warning_bytes", 10_000, "bytes", "less is a frame or two of a small file"),
        ),
        "Record with a larger buffer (tcpdump -B 65536), on a faster disk, whole packets (-s 0), with a filter on the "
        "Kafka ports; see what tcpdump says was dropped by the kernel.",
        _lost,
        _FOREVER_US,
    ),
    Rule(
        "recording_unreadable",
        "info; warning from `warning_share` on",
        "recording",
        "Messages or parts of a recording could not be read. Files that follow each other are one recording, as in "
        "recording_tls.",
        ("quarantine", "captures"),
        (
            Threshold("places", 1, "places", "nothing is left out without a word"),
            Threshold("warning_share", 0.01, "of the frames undecoded", "what is counted here is off by as much"),
        ),
        "The table quarantine names packet, message and reason of each. Of messages that no rule explains, "
        "`kafkascope read FILE` shows the exchange.",
        _unreadable,
        _FOREVER_US,
    ),
)
