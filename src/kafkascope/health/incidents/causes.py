"""Lists the causes of incidents in the order in which they are tried, and the findings that each explains."""

from collections.abc import Callable
from dataclasses import dataclass

from kafkascope.health.findings.diagnosis import Finding
from kafkascope.health.incidents.facts import AFTER_US, REPLICAS_BEHIND, Facts
from kafkascope.health.incidents.incident import key_of

# Errors from a cluster that has lost a broker or its controller.
OUTAGE_ERRORS = frozenset(
    {
        "BROKER_NOT_AVAILABLE",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "FENCED_LEADER_EPOCH",
        "KAFKA_STORAGE_ERROR",
        "LEADER_NOT_AVAILABLE",
        "NETWORK_EXCEPTION",
        "NOT_CONTROLLER",
        "NOT_COORDINATOR",
        "NOT_ENOUGH_REPLICAS",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "NOT_LEADER_OR_FOLLOWER",
        "REPLICA_NOT_AVAILABLE",
        "REQUEST_TIMED_OUT",
        "STALE_BROKER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
    }
)
# Their responses wait until the replicas have what was written: a frozen replica makes them slow at every broker.
REPLICATED_APIS = frozenset(
    {
        "AddOffsetsToTxn",
        "AddPartitionsToTxn",
        "DeleteRecords",
        "EndTxn",
        "InitProducerId",
        "OffsetCommit",
        "Produce",
        "ShareAcknowledge",
        "TxnOffsetCommit",
        "WriteShareGroupState",
        "WriteTxnMarkers",
    }
)
LOGIN_ERRORS = frozenset({"ILLEGAL_SASL_STATE", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM"})
_DENIED = "_AUTHORIZATION_FAILED"


# Errors that are ordinary responses to tools, by API. A finding that counts nothing else is a note.
ORDINARY_ERRORS = {
    "ConsumerGroupDescribe GROUP_ID_NOT_FOUND": "admin clients ask ConsumerGroupDescribe first and DescribeGroups for "
    "a group that isn't a consumer group",
    "ShareGroupDescribe GROUP_ID_NOT_FOUND": "a tool asked for a group that didn't exist yet, or no longer",
    "StreamsGroupDescribe GROUP_ID_NOT_FOUND": "a tool asked for a group that didn't exist yet, or no longer",
    "DescribeShareGroupOffsets GROUP_ID_NOT_FOUND": "a tool asked for a group that didn't exist yet, or no longer",
    "DescribeGroups GROUP_ID_NOT_FOUND": "a tool asked for a group that didn't exist yet, or no longer",
    "DescribeDelegationToken DELEGATION_TOKEN_REQUEST_NOT_ALLOWED": "an admin client asked for delegation tokens "
    "without a login",
}


@dataclass(frozen=True, slots=True)
class Join:
    """Findings of these rules are consequences in this role if they share an entity of one of these kinds with the
    cause or, without kinds, only its time. `errors` limits findings about errors to those that count no other errors,
    `apis` findings about an API at a broker to these, `cause_apis` causes to those about one of these; `after_us` is
    how long after the end of the cause they may begin."""

    role: str
    rules: tuple[str, ...]
    shares: tuple[str, ...]
    errors: frozenset[str] | None = None
    apis: frozenset[str] | None = None
    cause_apis: frozenset[str] | None = None
    after_us: int = AFTER_US


@dataclass(frozen=True, slots=True)
class Cause:
    """`anchors` are the rules whose findings show it. Anchors that share an entity of a kind in `one_by` and follow
    each other are one incident. `takes` filters out findings of those rules that don't show it."""

    name: str
    says: str
    anchors: tuple[str, ...]
    one_by: tuple[str, ...]
    joins: tuple[Join, ...] = ()
    takes: Callable[[Finding, Facts], bool] | None = None


def _is_serious(finding: Finding, _: Facts) -> bool:
    return finding.severity != "info"


def _refuses_logins(finding: Finding, facts: Facts) -> bool:
    return _mostly(finding, facts, lambda error: error in LOGIN_ERRORS)


def _is_ordinary(finding: Finding, facts: Facts) -> bool:
    named = facts.named.get(key_of(finding))
    errors = named.errors if named is not None else {}
    all_ordinary = all(f"{finding.subject} {error}" in ORDINARY_ERRORS for error in errors)
    return bool(errors) and all_ordinary and finding.severity != "critical"


def _denies_access(finding: Finding, facts: Facts) -> bool:
    return _mostly(finding, facts, lambda error: error.endswith(_DENIED))


def _mostly(finding: Finding, facts: Facts, counts: Callable[[str], bool]) -> bool:
    named = facts.named.get(key_of(finding))
    errors = named.errors if named is not None else {}
    return 2 * sum(number for error, number in errors.items() if counts(error)) > sum(errors.values())


_OUTAGE = (
    Join("election", ("quorum_frequent_elections", "quorum_leader_resigned"), ("quorum",)),
    Join("no leader", ("quorum_leaderless",), ("quorum",)),
    Join("majority at risk", ("quorum_majority_at_risk",), ("quorum",)),
    Join("replica behind", REPLICAS_BEHIND, ("node",)),
    Join("slow calls", ("api_slow",), ("node",)),
    Join("writes that wait for the replica", ("api_slow",), ("quorum",), apis=REPLICATED_APIS, after_us=0),
    Join("calls without a response", ("api_unanswered",), ("node",)),
    Join("failed calls", ("api_error_rate",), ("node", "quorum"), OUTAGE_ERRORS),
    Join("redirected calls", ("api_passing_errors",), ("node", "quorum")),
    Join("redelivered records", ("share_moved", "share_member_disconnected", "share_session_reset"), ("node",)),
    Join("tasks without owner", ("streams_long_pause", "streams_task_unheld"), ("node", "coordinator")),
    Join(
        "partitions that lost a replica",
        ("partition_leaderless", "partition_under_replicated", "partition_leader_changes"),
        ("quorum",),
    ),
)
_OWNERLESS = (
    Join("tasks without owner", ("streams_long_pause", "streams_task_unheld"), ("group",)),
    Join(
        "unstable assignment",
        ("streams_many_moves", "streams_standbys_missing", "streams_warmup_stuck", "streams_assignment_delayed"),
        ("group",),
    ),
)
_REDELIVERED = (
    Join("work done twice", ("share_redelivery_storm",), ("group",)),
    Join("records near the delivery limit", ("share_near_limit",), ("group",)),
    Join("no progress", ("share_standing_still",), ("share_partition", "group")),
    Join("growing lag", ("share_lag_growing",), ("group",)),
)

CAUSES = (
    Cause(
        "recording_incomplete",
        "The recording lacks packets: responses and ends of deliveries that did happen are missing.",
        ("recording_lost",),
        ("recording",),
        (Join("calls without a response", ("api_unanswered",), ()),),
        _is_serious,
    ),
    Cause(
        "recording_unread",
        "Much of the recording is encrypted or unreadable.",
        ("recording_tls", "recording_unreadable"),
        ("recording",),
        (),
        _is_serious,
    ),
    Cause(
        "leader_lost",
        "The leader of the quorum was lost. Shown as `node_down` if its connections closed, as `node_frozen` if "
        "it fell silent with its connections open.",
        ("quorum_leader_lost", "quorum_leaderless"),
        ("quorum",),
        # Without a leader there is nobody to fetch from.
        (*_OUTAGE, Join("replica behind", REPLICAS_BEHIND, ("quorum",), after_us=0)),
    ),
    Cause(
        "node_behind",
        "A controller or broker stopped following the metadata log. Shown as `node_frozen` if it continued by itself, "
        "as `node_down` if it restarted or never came back.",
        REPLICAS_BEHIND,
        ("node",),
        _OUTAGE,
    ),
    Cause(
        "application_stopped",
        "A streams application stopped, or can't start: a member asked for it, topics are missing or wrong, or its "
        "topology is refused.",
        (
            "streams_shutdown",
            "streams_missing_source_topics",
            "streams_incorrectly_partitioned_topics",
            "streams_missing_internal_topics",
            "streams_topology_refused",
        ),
        ("group", "client"),
        (
            *_OWNERLESS,
            Join("members that left", ("streams_member_lost", "streams_fenced_members"), ("group",)),
            Join("statuses", ("streams_stale_topology", "streams_other_status"), ("group",)),
        ),
    ),
    Cause(
        "poison_record",
        "A record came back until the delivery limit, and the broker archived it: nobody processed it.",
        ("share_poison_record",),
        ("share_partition", "group"),
        _REDELIVERED,
    ),
    Cause(
        "member_hung",
        "A member kept its work longer than allowed: it hangs, or its work takes longer than the lock or the session.",
        ("share_lock_expired", "streams_fenced_members"),
        ("share_member", "streams_group"),
        (
            Join("acknowledgements refused", ("share_refused_acknowledgements",), ("client",)),
            Join("late acknowledgements", ("share_slow_acknowledgement",), ("group",)),
            Join("share session lost", ("share_session_reset",), ("client",)),
            Join("member removed", ("streams_member_lost",), ("group",)),
            *_REDELIVERED,
            *_OWNERLESS,
        ),
    ),
    Cause(
        "member_crashed",
        "A member disappeared without leaving the group: a crash, a kill, a cut network.",
        ("share_member_disconnected", "streams_member_lost"),
        ("share_member", "streams_member"),
        (
            Join("share session lost", ("share_session_reset",), ("client",)),
            *_REDELIVERED,
            *_OWNERLESS,
        ),
    ),
    Cause(
        "group_without_members",
        "Records wait for a group that has no members.",
        ("share_no_members",),
        ("group",),
        (
            Join("no progress", ("share_standing_still",), ("group",)),
            Join("growing lag", ("share_lag_growing",), ("group",)),
        ),
    ),
    Cause(
        "ordinary_errors",
        "Tools got errors that are ordinary responses to their requests. A note.",
        ("api_error_rate",),
        ("api",),
        (),
        _is_ordinary,
    ),
    Cause(
        "login_refused",
        "A client's login is refused.",
        ("api_error_rate",),
        ("client", "broker"),
        (),
        _refuses_logins,
    ),
    Cause(
        "access_denied",
        "A client may not do what it asks for.",
        ("api_error_rate",),
        ("client",),
        (),
        _denies_access,
    ),
    Cause(
        "broker_slow",
        "A broker responds slowly: it is overloaded, its disk is slow, or it paused.",
        ("api_slow",),
        ("broker", "api"),
        (
            Join("calls without a response", ("api_unanswered",), ("broker",)),
            Join("failed calls", ("api_error_rate",), ("broker",), OUTAGE_ERRORS),
            Join(
                "late acknowledgements",
                ("share_slow_acknowledgement",),
                ("coordinator",),
                cause_apis=frozenset({"ShareAcknowledge", "WriteShareGroupState"}),
            ),
        ),
    ),
    Cause(
        "member_slow",
        "A member needs most of the lock for its work: with a little more load its locks expire.",
        ("share_slow_acknowledgement",),
        ("group",),
        (Join("growing lag", ("share_lag_growing",), ("group",)),),
    ),
    Cause(
        "quota_exceeded",
        "Brokers hold a client back by its quota.",
        ("client_throttled",),
        ("client",),
    ),
    Cause(
        "client_too_old",
        "Clients use API versions that the newest release doesn't serve: they fail after the upgrade.",
        ("client_versions_dropped",),
        (),
    ),
)
