"""The rules about the quorum: thresholds with reasons, the summary and advice of each finding."""

from kafkascope.formatting import count, first_names, span
from kafkascope.health.findings.episodes import Episode
from kafkascope.health.findings.rules.rule import Limits, Rule, SeverityAndSummary, Threshold
from kafkascope.health.findings.words import nodes, of_cluster_quoted, phrased, quoted, times

ELECTION_CAUSES = {
    "resigned": "leader resigned",
    "lost": "leader lost",
    "timeout": "leader out of reach",
    "no_leader": "no leader before",
}
_REPLICAS, _EVENTS = ("quorum_replicas",), ("quorum_events",)
_DESCRIBE = "`kafkascope describe quorum BROKER`"
_FETCH_TIMEOUT = "`controller.quorum.fetch.timeout.ms`: a voter that gets no response for that long starts an election"
_SESSION = "`broker.session.timeout.ms`: brokers notice controllers that don't respond for that long"


def _leader_lost(episode: Episode, limits: Limits) -> SeverityAndSummary:
    longest = episode.number("leaderless_ms")
    losses, leaders = episode.number("elections"), nodes(episode.named["lost_leaders"])
    lost = f"its leader, {leaders}," if losses == 1 else f"its leader {times(losses)} ({leaders})"
    lasted = f"for {span(longest)}" if losses == 1 else f"for up to {span(longest)}"
    summary = (
        f"The {of_cluster_quoted(episode.subject)} lost {lost} and had no leader {lasted}; new leader: "
        f"{nodes(episode.named['new_leaders'])}."
    )
    return ("critical" if longest >= limits["critical_ms"] else "warning"), summary


def _leaderless(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    longest = episode.number("leaderless_ms")
    if longest < limits["ms"]:
        return None
    summary = f"The {of_cluster_quoted(episode.subject)} had no leader for {span(longest)} when the recording ended."
    return ("critical" if longest >= limits["critical_ms"] else "warning"), summary


def _frequent_elections(episode: Episode, limits: Limits) -> str | None:
    if episode.number("elections") < limits["elections"]:
        return None
    return (
        f"The {of_cluster_quoted(episode.subject)} held {count(episode.number('elections'), 'election')} in "
        f"{span(episode.length_ms)}; cause: {phrased(episode.named['causes'], ELECTION_CAUSES)}."
    )


def _behind(episode: Episode) -> str:
    age, lag = episode.number("fetch_age_ms"), episode.number("lag_ms")
    fetched = f"didn't fetch for up to {span(age)}" if age >= lag / 2 else f"lagged by up to {span(lag)}"
    return f"{of_cluster_quoted(episode.subject)} {fetched} and was {count(episode.number('lag'), 'record')} behind"


def _follower_behind(episode: Episode, limits: Limits) -> str | None:
    if max(episode.number("fetch_age_ms"), episode.number("lag_ms")) < limits["ms"]:
        return None
    return f"Voter {_behind(episode)}."


def _observer_behind(episode: Episode, limits: Limits) -> str | None:
    if max(episode.number("fetch_age_ms"), episode.number("lag_ms")) < limits["ms"]:
        return None
    return f"Observer {_behind(episode)}."


def _never_fetched(episode: Episode, limits: Limits) -> str | None:
    longest = episode.number("unknown_ms")
    if longest < limits["ms"]:
        return None
    node, leaders = of_cluster_quoted(episode.subject), nodes(episode.named["leaders"])
    return f"N{node[1:]} didn't fetch from the leader {leaders} for {span(longest)}."


def _majority_at_risk(episode: Episode, limits: Limits) -> str | None:
    if episode.number("observations") < limits["observations"]:
        return None
    behind = episode.number("behind")
    were = "was" if behind == 1 else "were"
    # A single observation has no duration.
    lasting = f", for {span(episode.length_ms)}" if episode.length_ms else ""
    return (
        f"{behind:.0f} of {episode.number('voters'):.0f} voters {were} lagging at the same time{lasting}: "
        f"the {of_cluster_quoted(episode.subject)} is about to lose its majority."
    )


def _resigned(episode: Episode, limits: Limits) -> str | None:
    if episode.number("resignations") < limits["resignations"]:
        return None
    resignations, leaders = episode.number("resignations"), nodes(episode.named["leaders"])
    often = "" if resignations == 1 else f" {times(resignations)}"
    return f"The leader of the {of_cluster_quoted(episode.subject)} resigned{often}: {leaders}."


def _voters_changed(episode: Episode, limits: Limits) -> str | None:
    if episode.number("changes") < limits["changes"]:
        return None
    changes = [f"from {before} to {after}" for before, after in map(_voters, episode.samples("voters"))]
    return f"The voters of the {of_cluster_quoted(episode.subject)} changed {first_names(changes, 5)}."


def _voters(change: str) -> tuple[str, str]:
    """Of `1,2,3 to 1,2,3,4`."""
    before, _, after = change.partition(" to ")
    return quoted(before), quoted(after or "unknown")


RULES = (
    Rule(
        "quorum_leader_lost",
        "warning; critical from `critical_ms` on",
        "quorum",
        "An election because the leader failed, or because a voter no longer reached it. Until the next leader, no "
        "topic, config or partition leader changes.",
        _EVENTS,
        (Threshold("critical_ms", 9000, "ms without a leader", _SESSION),),
        f"Look at the lost node: its process, its disk, long garbage collections. Who leads now: {_DESCRIBE}.",
        _leader_lost,
    ),
    Rule(
        "quorum_leaderless",
        "warning; critical from `critical_ms` on",
        "quorum",
        "The quorum has no leader when the recording ends.",
        _EVENTS,
        (
            Threshold(
                "ms",
                4000,
                "ms",
                "`controller.quorum.fetch.timeout.ms` (2 s) and an election of twice "
                "`controller.quorum.election.timeout.ms` (1 s)",
            ),
            Threshold("critical_ms", 9000, "ms", _SESSION),
        ),
        f"Check if there is a leader now: {_DESCRIBE}. If not, a majority of controllers is down or can't reach one "
        "another. Start them; don't format any.",
        _leaderless,
    ),
    Rule(
        "quorum_frequent_elections",
        "warning",
        "quorum",
        "Leadership changes often.",
        _EVENTS,
        (
            Threshold("elections", 4, "elections", "a rolling restart of three controllers makes at most three"),
            Threshold("minutes", 60, "minutes that contain them", "a rolling restart is over by then"),
        ),
        "Look for slow disks (fsync of the metadata log), long garbage collections and packet loss between "
        "controllers; where these can't be fixed, raise `controller.quorum.fetch.timeout.ms` and "
        "`controller.quorum.election.timeout.ms`.",
        _frequent_elections,
    ),
    Rule(
        "quorum_follower_behind",
        "warning",
        "replica",
        "A voter doesn't fetch or doesn't keep up: it is frozen, down or slow.",
        _REPLICAS,
        (Threshold("ms", 2000, "ms since its last fetch, or since it was caught up", _FETCH_TIMEOUT),),
        f"Look at the node's process and disk, and at the network to the leader. Lag and last fetch now: {_DESCRIBE}.",
        _follower_behind,
    ),
    Rule(
        "quorum_observer_behind",
        "warning",
        "replica",
        "A broker's copy of the metadata is old, and it serves clients from that copy.",
        _REPLICAS,
        (
            Threshold(
                "ms",
                9000,
                "ms since its last fetch, or since it was caught up",
                "`broker.session.timeout.ms`: a broker that is silent for that long is fenced",
            ),
        ),
        "Nothing to do if the broker was stopped on purpose. If it runs, look in its log for errors while applying "
        f"metadata (metric `metadata-apply-error-count`). Lag and last fetch now: {_DESCRIBE}.",
        _observer_behind,
    ),
    Rule(
        "quorum_replica_never_fetched",
        "warning",
        "replica",
        "A replica is known and hasn't fetched from this leader: its lag is unknown.",
        _REPLICAS,
        (
            Threshold(
                "ms", 10_000, "ms", "five times `controller.quorum.fetch.timeout.ms`: it had time to find the leader"
            ),
        ),
        "Start the node, or check that it reaches the leader: `controller.quorum.bootstrap.servers` (or "
        "`controller.quorum.voters`), `advertised.listeners` of the controllers, TLS and SASL of the controller "
        "listener. Remove a voter that doesn't come back: `kafka-metadata-quorum.sh --bootstrap-server BROKER "
        "remove-controller --controller-id ID --controller-directory-id DIRECTORY`.",
        _never_fetched,
    ),
    Rule(
        "quorum_majority_at_risk",
        "critical",
        "quorum",
        "Half of the voters or more lagged at once by the threshold of `quorum_follower_behind`, or hadn't "
        "fetched for that of `quorum_replica_never_fetched`. Without a majority nothing can be committed.",
        _REPLICAS,
        (Threshold("observations", 1, "observations", "the leader itself resigns when no majority fetches from it"),),
        f"Bring back the voters that lag before anything else restarts. Which ones: {_DESCRIBE}.",
        _majority_at_risk,
    ),
    Rule(
        "quorum_leader_resigned",
        "info",
        "quorum",
        "A leader resigned, as it does when its node stops in order.",
        _EVENTS,
        (Threshold("resignations", 1, "resignations", "explains the election after it"),),
        "Nothing to do if the node was restarted on purpose.",
        _resigned,
    ),
    Rule(
        "quorum_voters_changed",
        "info",
        "quorum",
        "The set of voters changed.",
        _EVENTS,
        (Threshold("changes", 1, "changes", "it should have been intended"),),
        "Compare with the times at which controllers were added or removed (`kafka-metadata-quorum.sh`).",
        _voters_changed,
    ),
)
