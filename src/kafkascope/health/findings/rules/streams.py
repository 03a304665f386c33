"""The rules about streams groups: thresholds with reasons, the summary and advice of each finding."""

from kafkascope.formatting import count, span
from kafkascope.health.findings.episodes import Episode
from kafkascope.health.findings.rules.rule import Limits, Rule, Severity, SeverityAndSummary, Threshold
from kafkascope.health.findings.words import name_counts, names, phrased, quoted, times

# What ended a task at its last member, and `new`.
_CAUSES = {
    "new": "new task",
    "revoked": "revoked from its member",
    "promoted": "role changed",
    "demoted": "role changed",
    "changed": "role changed",
    "left": "member left",
    "lost": "member disappeared",
    "fenced": "member fenced",
    "rejoined": "member rejoined without it",
    "closed": "connection closed",
    "gone": "member no longer described",
    "unseen": "hole in the recording",
}
_MINUTES, _STATUSES = ("streams_group_health",), ("streams_statuses", "streams_group_health")
_DESCRIBE = "`kafkascope describe streams-group BROKER {group}`"
_CONFIG = "kafka-configs.sh --bootstrap-server BROKER --alter --entity-type groups --entity-name {group} --add-config"
# group.streams.heartbeat.interval.ms is 5 s, group.streams.session.timeout.ms 45 s.
_HANDOVER_MS, _TAKEOVER_MS = 15_000, 60_000
_HANDOVER = "three heartbeats (5 s by default): released, granted, reported"
_TAKEOVER = "the session timeout (45 s) and three heartbeats: even after a crash it has an owner by then"


def _group(name: str) -> str:
    return f"streams group {quoted(name)}"


def _task(episode: Episode) -> str:
    if episode.subjects > 1:
        return f"{episode.subjects} tasks of {_group(episode.group)} ({names(episode.named['tasks'])})"
    return f"Task {quoted(episode.subject.removeprefix(episode.group + '/'))} of {_group(episode.group)}"


def _unheld(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    longest = episode.number("longest_ms")
    if longest < limits["ms"]:
        return None
    still = " until the recording ended" if episode.number("open") and episode.subjects == 1 else ""
    up_to = "up to " if episode.subjects > 1 else ""
    summary = (
        f"{_task(episode)} had no owner for {up_to}{span(longest)}{still}; cause: "
        f"{phrased(episode.named['causes'], _CAUSES)}."
    )
    return ("critical" if longest >= limits["critical_ms"] else "warning"), summary


def _long_pause(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    longest = episode.number("longest_ms")
    if longest < limits["ms"]:
        return None
    cold = episode.number("cold")
    state = f", {cold:.0f} of them to members without a copy of the state" if cold else ""
    summary = (
        f"{_task(episode)} stalled for up to {span(longest)} in {count(episode.number('moves'), 'move')}{state}; "
        f"cause: {phrased(episode.named['causes'], _CAUSES)}."
    )
    return ("critical" if longest >= limits["critical_ms"] else "warning"), summary


def _member_lost(episode: Episode, limits: Limits) -> str | None:
    silent = episode.number("silent_ms")
    if silent < limits["silent_ms"]:
        return None
    client = max(episode.named["clients"], default=episode.subject.rpartition("/")[2])
    members = f"Member {quoted(client)}" if episode.subjects == 1 else f"{episode.subjects} members"
    tasks = count(episode.number("active_tasks"), "active task")
    return (
        f"{members} of {_group(episode.group)} with {tasks} disappeared without leaving the group, which noticed after "
        f"{span(silent)}."
    )


def _many_moves(episode: Episode, limits: Limits) -> str | None:
    moves, tasks = episode.number("moves"), episode.number("tasks")
    if moves < limits["moves"] or moves < limits["moves_per_task"] * tasks:
        return None
    changes = {"joined": "joined", "left": "left", "lost": "disappeared"}
    counts = {words: episode.number(name) for name, words in changes.items()}
    members = ", ".join(f"{number:,.0f} {words}" for words, number in counts.items() if number)
    return (
        f"Streams group {quoted(episode.subject)} with {count(tasks, 'task')} had {count(moves, 'move')} in "
        f"{span(episode.length_ms)}{f'; members: {members}' if members else ''}."
    )


def _standbys_missing(episode: Episode, limits: Limits) -> str | None:
    minutes = episode.number("minutes")
    if minutes < limits["minutes"]:
        return None
    missing = count(episode.number("missing"), "standby task")
    return f"Streams group {quoted(episode.subject)} lacked up to {missing} for {minutes:,.0f} min."


def _warmup_stuck(episode: Episode, limits: Limits) -> str | None:
    longest, dropped = episode.number("longest_ms"), episode.number("dropped")
    if longest < limits["ms"] and dropped < limits["dropped"]:
        return None
    summary = f"{_task(episode)} {'was' if episode.subjects == 1 else 'were'} warmed up for up to {span(longest)}"
    ended = f", was dropped {times(dropped)}" if dropped else ""
    return f"{summary}{ended} and didn't become active."


def _fenced(episode: Episode, limits: Limits) -> str | None:
    members = episode.number("members")
    if members < limits["members"]:
        return None
    return (
        f"{count(members, 'member')} of {_group(episode.subject)} had to rejoin: the group had removed "
        f"{'it' if members == 1 else 'them'}."
    )


def _shutdown(episode: Episode, limits: Limits) -> str | None:
    requests = episode.number("requests")
    if requests < limits["requests"] and not episode.number("statuses"):
        return None
    by_requests = f" by {count(requests, 'request')}" if requests else ""
    return f"All members of {_group(episode.subject)} were ordered to shut down{by_requests}."


def _topology_refused(episode: Episode, limits: Limits) -> str | None:
    calls = episode.number("calls")
    if calls < limits["calls"]:
        return None
    return f"The topology of client {quoted(episode.subject)} was refused: {name_counts(episode.named['errors'])}."


def _status(severity: Severity, after: Severity | None, description: str) -> "_StatusTeller":
    return _StatusTeller(severity, after, description)


class _StatusTeller:
    """Fires for a status that lasts `ms`; from `later_ms` on its severity is `after`."""

    __slots__ = ("after", "says", "severity")

    def __init__(self, severity: Severity, after: Severity | None, description: str) -> None:
        self.severity, self.after, self.says = severity, after, description

    def __call__(self, episode: Episode, limits: Limits) -> SeverityAndSummary | None:
        longest = episode.number("longest_ms")
        if longest < limits["ms"]:
            return None
        details = episode.samples("details")
        detail = f": {quoted(details[0].rstrip('.'))}" if details else ""
        severity = self.after if self.after and longest >= limits["later_ms"] else self.severity
        lasting = f" for {span(longest)}" if longest else ""  # no duration: it was seen once
        return severity, f"Streams group {quoted(episode.subject)} {self.says}{lasting}{detail}."


STATUS_RULES = {
    "STALE_TOPOLOGY": "streams_stale_topology",
    "MISSING_SOURCE_TOPICS": "streams_missing_source_topics",
    "INCORRECTLY_PARTITIONED_TOPICS": "streams_incorrectly_partitioned_topics",
    "MISSING_INTERNAL_TOPICS": "streams_missing_internal_topics",
    "SHUTDOWN_APPLICATION": "streams_shutdown",
    "ASSIGNMENT_DELAYED": "streams_assignment_delayed",
}
OTHER_STATUS = "streams_other_status"

RULES = (
    Rule(
        "streams_task_unheld",
        "warning; critical from `critical_ms` on",
        "streams_task",
        "A task had no owner: a new task that no member took, or one that nobody took over. Tasks that another member "
        "took over are in `streams_long_pause`.",
        ("streams_unheld", "streams_group_health", "captures"),
        (Threshold("ms", _HANDOVER_MS, "ms", _HANDOVER), Threshold("critical_ms", _TAKEOVER_MS, "ms", _TAKEOVER)),
        f"Who has which task, and who should: {_DESCRIBE}. A task that waits for its target names the member that "
        "doesn't release it; the state is `NotReady` if topics are missing.",
        _unheld,
    ),
    Rule(
        "streams_long_pause",
        "warning; critical from `critical_ms` on",
        "streams_task",
        "A task made no progress between two members.",
        ("streams_moves",),
        (Threshold("ms", _HANDOVER_MS, "ms", _HANDOVER), Threshold("critical_ms", _TAKEOVER_MS, "ms", _TAKEOVER)),
        "After a crash the pause is the session timeout (`streams.session.timeout.ms` of the group, 45 s, not less "
        "than the broker's `group.streams.min.session.timeout.ms`): shorten it, or have members leave on shutdown "
        f"(`KafkaStreams.close`). Keep warm copies: `{_CONFIG} streams.num.standby.replicas=1`.",
        _long_pause,
    ),
    Rule(
        "streams_member_lost",
        "warning",
        "streams_member",
        "A member disappeared without leaving the group: it crashed, was killed, lost its network, or paused longer "
        "than the session timeout.",
        ("streams_lost_members",),
        (Threshold("silent_ms", 0, "ms", "each costs a rebalance, however soon it is noticed"),),
        "Look at the member's process: out of memory, killed by its supervisor, long garbage collections. "
        f"Who took over: {_DESCRIBE}.",
        _member_lost,
    ),
    Rule(
        "streams_many_moves",
        "warning",
        "streams_group",
        "Tasks move repeatedly: members come and go, and state is restored instead of records processed.",
        _MINUTES,
        (
            Threshold("moves_per_task", 3, "moves per task", "a rolling restart moves a task away and back: two"),
            Threshold("moves", 10, "moves", "groups of a few tasks move them all with each member"),
        ),
        "Find out who joins and leaves (client ids in `streams_tasks`): a crash loop, an autoscaler that flaps. A "
        "longer `streams.session.timeout.ms` (at most 60 s by default) bridges short restarts.",
        _many_moves,
    ),
    Rule(
        "streams_standbys_missing",
        "warning",
        "streams_group",
        "Tasks have fewer standby copies than configured: the next crash restores them from the changelog.",
        _MINUTES,
        (Threshold("minutes", 5, "minutes", "longer than a restart of a member takes"),),
        "A standby is never in the process that has the task: `streams.num.standby.replicas` + 1 processes are needed. "
        f"Who has which task: {_DESCRIBE}.",
        _standbys_missing,
    ),
    Rule(
        "streams_warmup_stuck",
        "warning",
        "streams_task",
        "A member restores a task's state and doesn't finish.",
        ("streams_tasks", "streams_group_health", "captures"),
        (
            Threshold(
                "ms",
                600_000,
                "ms",
                "`probing.rebalance.interval.ms` of Kafka Streams: Streams checks at that interval itself",
            ),
            Threshold("dropped", 3, "times", "once is a change of plan, three times is a pattern"),
        ),
        "Compare the lag of the restore consumer (metric `restore-remaining-records-total`) with the rate at which the "
        "changelog grows; a larger `acceptable.recovery.lag`, or more bandwidth for restoring, ends it.",
        _warmup_stuck,
    ),
    Rule(
        "streams_fenced_members",
        "warning",
        "streams_group",
        "Members received `FENCED_MEMBER_EPOCH` or `UNKNOWN_MEMBER_ID`, and closed their tasks.",
        _MINUTES,
        (Threshold("members", 1, "members", "a live member that the group removed has worked for nothing"),),
        "The member was silent for longer than `streams.session.timeout.ms` (45 s): look for long garbage collections, "
        "a suspended machine, or a coordinator that lost the group.",
        _fenced,
    ),
    Rule(
        "streams_missing_source_topics",
        "critical",
        "streams_group",
        "Topics that the application reads don't exist. It processes nothing.",
        _STATUSES,
        (Threshold("ms", 0, "ms", "the application stops at once"),),
        "Create the topics that the status names: `kafka-topics.sh --bootstrap-server BROKER --create --topic "
        "{source_topic}`. Or correct the names in the topology.",
        _status("critical", None, "lacked source topics"),
    ),
    Rule(
        "streams_incorrectly_partitioned_topics",
        "critical",
        "streams_group",
        "Topics that are joined differ in their number of partitions, or an internal topic has the wrong number.",
        _STATUSES,
        (Threshold("ms", 0, "ms", "the application stops at once"),),
        "Give the topics that the status names the same number of partitions, or `repartition()` one of them in the "
        "topology. After a change of partitions stop the application and reset it, which deletes its state and reads "
        "its input from the start: `kafka-streams-groups.sh --bootstrap-server BROKER --reset-offsets --group {group} "
        "--all-input-topics --to-earliest --delete-all-internal-topics --execute`.",
        _status("critical", None, "had topics with the wrong number of partitions"),
    ),
    Rule(
        "streams_missing_internal_topics",
        "warning; critical from `later_ms` on",
        "streams_group",
        "Repartition or changelog topics don't exist and aren't being created.",
        _STATUSES,
        (
            Threshold(
                "ms",
                10_000,
                "ms",
                "two heartbeats: a new application gets this status until the broker has created them",
            ),
            Threshold("later_ms", _TAKEOVER_MS, "ms", "creating them failed"),
        ),
        "The coordinator's log shows why it can't create them: CREATE on the topics or the cluster isn't allowed, the "
        "replication factor is higher than the number of brokers, or a policy forbids it.",
        _status("warning", "critical", "lacked internal topics"),
    ),
    Rule(
        "streams_stale_topology",
        "info; warning from `later_ms` on",
        "streams_group",
        "Members run an older topology than the group has.",
        _STATUSES,
        (
            Threshold("ms", 0, "ms", "each rolling upgrade shows it"),
            Threshold("later_ms", 600_000, "ms", "a rolling upgrade of a few instances takes less than ten minutes"),
        ),
        f"Finish the upgrade. The topology epoch of each member: {_DESCRIBE}.",
        _status("info", "warning", "had members with an older topology"),
    ),
    Rule(
        "streams_topology_refused",
        "warning",
        "client",
        "A client's topology or its epoch isn't the group's: `STREAMS_INVALID_TOPOLOGY`, "
        "`STREAMS_INVALID_TOPOLOGY_EPOCH`, `STREAMS_TOPOLOGY_FENCED`. It can't join.",
        ("api_errors",),
        (Threshold("calls", 1, "calls", "it doesn't pass by itself"),),
        "Roll every instance to the same build, or give the changed application another `application.id`.",
        _topology_refused,
    ),
    Rule(
        "streams_shutdown",
        "critical",
        "streams_group",
        "A member asked the whole application to stop (`StreamThreadExceptionResponse.SHUTDOWN_APPLICATION`).",
        _STATUSES,
        (Threshold("requests", 1, "requests", "one stops every member"),),
        "Find the exception in the log of the member that asked, fix its cause, and restart the application.",
        _shutdown,
    ),
    Rule(
        "streams_assignment_delayed",
        "info",
        "streams_group",
        "The coordinator waits before it assigns tasks.",
        _STATUSES,
        (Threshold("ms", 10_000, "ms", "`group.streams.initial.rebalance.delay.ms` is 3 s, a heartbeat 5 s"),),
        "Compare `streams.initial.rebalance.delay.ms` and `streams.assignment.interval.ms` of the group with what you "
        "intended.",
        _status("info", None, "waited for its assignment"),
    ),
    Rule(
        OTHER_STATUS,
        "info",
        "streams_group",
        "Responses have a status without a rule of its own, such as `MISSING_CLIENT_TAGS`.",
        _STATUSES,
        (Threshold("ms", 0, "ms", "its cost isn't known"),),
        f"Look at the coordinator's log, and at the group: {_DESCRIBE}.",
        _status("info", None, "had another status"),
    ),
)
