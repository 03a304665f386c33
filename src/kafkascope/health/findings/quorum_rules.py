"""The rules about the quorum: thresholds with their reasons, what each says and what to do."""

from kafkascope.formatting import count, span
from kafkascope.health.findings.episodes import Episode
from kafkascope.health.findings.rule import Limits, Rule, SeverityAndSummary, Threshold
from kafkascope.health.findings.words import name_counts, names, times

_REPLICAS, _EVENTS = ("quorum_replicas",), ("quorum_events",)
_STATUS = "kafka-metadata-quorum.sh --bootstrap-controller CONTROLLER describe --status"
_REPLICATION = "kafka-metadata-quorum.sh --bootstrap-controller CONTROLLER describe --replication"
_FETCH_TIMEOUT = "controller.quorum.fetch.timeout.ms: a voter that hears nothing for so long asks for votes"
_SESSION = "broker.session.timeout.ms: what controllers do not answer for so long, brokers feel"


def _leader_lost(episode: Episode, limits: Limits) -> SeverityAndSummary:
    longest = episode.number("leaderless_ms")
    leaders = names(episode.named["lost_leaders"])
    summary = (
        f"The {episode.subject} lost its leader {times(episode.number('elections'))} ({leaders}) and had none for "
        f"up to {span(longest)}; then {names(episode.named['new_leaders'])} led."
    )
    return ("critical" if longest >= limits["critical_ms"] else "warning"), summary


def _leaderless(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    longest = episode.number("leaderless_ms")
    if longest < limits["ms"]:
        return None
    summary = f"The {episode.subject} had no leader for {span(longest)} when the recording ended."
    return ("critical" if longest >= limits["critical_ms"] else "warning"), summary


def _frequent_elections(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    if episode.number("elections") < limits["elections"]:
        return None
    summary = (
        f"The {episode.subject} held {count(episode.number('elections'), 'election')} in {span(episode.length_ms)}: "
        f"{name_counts(episode.named['causes'])}."
    )
    return "warning", summary


def _behind(episode: Episode) -> str:
    age, lag = episode.number("fetch_age_ms"), episode.number("lag_ms")
    fetched = f"did not fetch for up to {span(age)}" if age >= lag / 2 else f"trailed by up to {span(lag)}"
    return f"{fetched} and was {count(episode.number('lag'), 'record')} behind"


def _follower_behind(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    if max(episode.number("fetch_age_ms"), episode.number("lag_ms")) < limits["ms"]:
        return None
    return "warning", f"Voter {episode.subject} {_behind(episode)}."


def _observer_behind(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    if max(episode.number("fetch_age_ms"), episode.number("lag_ms")) < limits["ms"]:
        return None
    return "warning", f"Observer {episode.subject} {_behind(episode)}."


def _never_fetched(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    longest = episode.number("unknown_ms")
    if longest < limits["ms"]:
        return None
    leader = names(episode.named["leaders"])
    summary = f"N{episode.subject[1:]} had not fetched from its leader ({leader}) for {span(longest)}."
    return "warning", summary


def _majority_at_risk(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    if episode.number("observations") < limits["observations"]:
        return None
    behind = episode.number("behind")
    were = "was" if behind == 1 else "were"
    # Seen once, nobody knows for how long.
    lasting = f", for {span(episode.length_ms)}" if episode.length_ms else ""
    summary = (
        f"{behind:.0f} of {count(episode.number('voters'), 'voter')} {were} behind at the same time{lasting}: "
        f"the {episode.subject} is about to lose its majority."
    )
    return "critical", summary


def _resigned(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    if episode.number("resignations") < limits["resignations"]:
        return None
    leaders = names(episode.named["leaders"])
    return "info", f"The leader of the {episode.subject} resigned {times(episode.number('resignations'))}: {leaders}."


def _voters_changed(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    if episode.number("changes") < limits["changes"]:
        return None
    return "info", f"The voters of the {episode.subject} changed: {'; '.join(episode.samples('voters'))}."


RULES = (
    Rule(
        "quorum_leader_lost",
        "warning; critical from `critical_ms` on",
        "quorum",
        "An election whose cause is that the leader was lost, or that a voter no longer heard of it. Meanwhile no "
        "topic, config or leader of a partition changes.",
        _EVENTS,
        (Threshold("critical_ms", 9000, "ms without a leader", _SESSION),),
        f"Look at the lost node: its process, its disk, long garbage collections. {_STATUS} shows who leads now.",
        _leader_lost,
    ),
    Rule(
        "quorum_leaderless",
        "warning; critical from `critical_ms` on",
        "quorum",
        "No leader when the recording ends.",
        _EVENTS,
        (
            Threshold(
                "ms",
                4000,
                "ms",
                "controller.quorum.fetch.timeout.ms (2 s) and an election of twice "
                "controller.quorum.election.timeout.ms (1 s)",
            ),
            Threshold("critical_ms", 9000, "ms", _SESSION),
        ),
        f"{_STATUS}: if it names no leader, a majority of controllers is down or cannot reach one another. Start "
        "them; do not format any.",
        _leaderless,
    ),
    Rule(
        "quorum_frequent_elections",
        "warning",
        "quorum",
        "Leadership does not stay where it is.",
        _EVENTS,
        (
            Threshold("elections", 4, "elections", "a rolling restart of three controllers makes at most three"),
            Threshold("minutes", 60, "minutes in which they fall", "a rolling restart is over by then"),
        ),
        "Look for slow disks (fsync of the metadata log), long garbage collections and packet loss between "
        "controllers; where these cannot be mended, raise controller.quorum.fetch.timeout.ms and "
        "controller.quorum.election.timeout.ms.",
        _frequent_elections,
    ),
    Rule(
        "quorum_follower_behind",
        "warning",
        "replica",
        "A voter does not fetch, or does not keep up: it is frozen, down or slow.",
        _REPLICAS,
        (Threshold("ms", 2000, "ms since its last fetch, or since it was caught up", _FETCH_TIMEOUT),),
        f"{_REPLICATION} shows lag and last fetch. Look at the node's process and disk, and at the network to the "
        "leader.",
        _follower_behind,
    ),
    Rule(
        "quorum_observer_behind",
        "warning",
        "replica",
        "A broker's copy of the metadata is old: it serves clients by it.",
        _REPLICAS,
        (
            Threshold(
                "ms",
                9000,
                "ms since its last fetch, or since it was caught up",
                "broker.session.timeout.ms: a broker that is silent for so long is fenced",
            ),
        ),
        f"{_REPLICATION} shows lag and last fetch. If the broker was stopped on purpose, this is no news; if it runs, "
        "look at its log for errors while applying metadata (metric metadata-apply-error-count).",
        _observer_behind,
    ),
    Rule(
        "quorum_replica_never_fetched",
        "warning",
        "replica",
        "A replica is known and has not fetched from this leader: its lag is unknown.",
        _REPLICAS,
        (
            Threshold(
                "ms", 10_000, "ms", "five times controller.quorum.fetch.timeout.ms: it had time to find the leader"
            ),
        ),
        "Start the node, or check that it reaches the leader: controller.quorum.bootstrap.servers (or "
        "controller.quorum.voters), advertised.listeners of the controllers, TLS and SASL of the controller listener. "
        "A voter that is gone for good: kafka-metadata-quorum.sh remove-controller.",
        _never_fetched,
    ),
    Rule(
        "quorum_majority_at_risk",
        "critical",
        "quorum",
        "Half of the voters or more were behind at once, by the threshold of quorum_follower_behind, or had not "
        "fetched for that of quorum_replica_never_fetched. Nothing can be committed without a majority.",
        _REPLICAS,
        (Threshold("observations", 1, "observations", "the leader itself resigns when no majority fetches from it"),),
        f"Bring back the voters that are behind before anything else restarts. {_REPLICATION} names them.",
        _majority_at_risk,
    ),
    Rule(
        "quorum_leader_resigned",
        "info",
        "quorum",
        "A leader gave up its leadership in order, as it does when its node stops.",
        _EVENTS,
        (Threshold("resignations", 1, "resignations", "explains the election after it"),),
        "Nothing to do where the node was restarted on purpose.",
        _resigned,
    ),
    Rule(
        "quorum_voters_changed",
        "info",
        "quorum",
        "The set of voters changed.",
        _EVENTS,
        (Threshold("changes", 1, "changes", "somebody should have meant it"),),
        "Compare with kafka-metadata-quorum.sh add-controller and remove-controller of that time.",
        _voters_changed,
    ),
)
