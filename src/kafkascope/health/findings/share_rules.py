"""The rules about share groups: thresholds with their reasons, what each says and what to do."""

from kafkascope.formatting import count, percent, span
from kafkascope.health.findings.episodes import Episode
from kafkascope.health.findings.rule import Limits, Rule, SeverityAndSummary, Threshold
from kafkascope.health.findings.words import name_counts, times

_DELIVERIES, _MINUTES = ("share_deliveries",), ("share_group_health",)
_DESCRIBE = "kafka-share-groups.sh --bootstrap-server BROKER --describe --group {group}"
_CONFIG = "kafka-configs.sh --bootstrap-server BROKER --alter --entity-type groups --entity-name {group} --add-config"
_ONE_RECORD = Threshold("records", 1, "records", "one record is one job done late or twice")


def _member(episode: Episode) -> str:
    if episode.subjects > 1:
        return f"{episode.subjects} members of share group {episode.group}"
    client = max(episode.named["clients"], default=None)
    return f"Member {client or episode.subject.rpartition('/')[2]} of share group {episode.group}"


def _partition(episode: Episode) -> str:
    if episode.subjects > 1:
        return f"{episode.subjects} partitions of share group {episode.group}"
    return f"{episode.subject.removeprefix(episode.group + '/')} of share group {episode.group}"


def _they(records: float) -> str:
    return "it" if records == 1 else "they"


def _lock_expired(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    records = episode.number("records")
    if records < limits["records"]:
        return None
    again = episode.named["redelivered_to"]
    went = f"went on to {name_counts(again)}" if again else f"{'was' if records == 1 else 'were'} not seen again"
    to = f"; {_they(records)} {went}"
    lock = span(episode.number("lock_timeout_ms"))
    summary = f"{_member(episode)} held {count(records, 'record')} past the lock of {lock}{to}."
    return ("critical" if records >= limits["critical_records"] else "warning"), summary


def _redelivery_storm(episode: Episode, limits: Limits) -> SeverityAndSummary:
    acquired, again = episode.number("acquired"), episode.number("redelivered")
    summary = (
        f"Share group {episode.subject} acquired {again:,.0f} of {count(acquired, 'record')} again, "
        f"{percent(again / acquired)} of its work."
    )
    return ("critical" if again / acquired >= limits["critical_share"] else "warning"), summary


def _poison_record(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    records = episode.number("records")
    if records < limits["records"]:
        return None
    offsets = ", ".join(episode.samples("offsets")[:5])
    where = "" if episode.subjects > 1 else f" (offset {offsets})"
    summary = (
        f"{_partition(episode)}: the broker gave up {count(records, 'record')}{where} after "
        f"{episode.number('delivery_count'):.0f} deliveries, last {name_counts(episode.named['last_outcome'])}."
    )
    return ("critical" if records >= limits["critical_records"] else "warning"), summary


def _rejected(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    records = episode.number("records")
    if records < limits["records"]:
        return None
    clients = name_counts(episode.named["clients"])
    summary = f"{_partition(episode)}: members rejected {count(records, 'record')} for good: {clients}."
    return ("warning" if records >= limits["warning_records"] else "info"), summary


def _near_limit(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    records = episode.number("records")
    if records < limits["records"]:
        return None
    deliveries = count(records, "delivery", "deliveries")
    summary = f"Share group {episode.subject} had {deliveries} of records that were near the delivery limit."
    return "warning", summary


def _disconnected(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    records = episode.number("records")
    if records < limits["records"]:
        return None
    again = episode.named["redelivered_to"]
    to = f"; {_they(records)} went on to {name_counts(again)}" if again else ""
    return "warning", f"{_member(episode)} lost its connection with {count(records, 'record')} in hand{to}."


def _standing_still(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    minutes, grown = episode.number("minutes"), episode.number("lag_growth")
    if minutes < limits["minutes"]:
        return None
    lag = f" while the group's lag grew by {count(grown, 'record')}" if grown > 0 else ""
    summary = f"{_partition(episode)} finished no record for {count(minutes, 'minute')}{lag}."
    return ("critical" if grown > 0 else "warning"), summary


def _slow_acknowledgement(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    slow, acknowledged = episode.number("slow"), episode.number("acknowledged")
    summary = (
        f"Share group {episode.subject} acknowledged {percent(slow / acknowledged)} of {count(acknowledged, 'record')} "
        f"only after {percent(limits['lock_share'])} of the lock of {span(episode.number('lock_timeout_ms'))}, the "
        f"slowest after {span(episode.number('slowest_ms'))}."
    )
    return "warning", summary


def _refused(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    calls = episode.number("calls")
    if calls < limits["calls"]:
        return None
    summary = (
        f"Client {episode.subject} had {count(calls, 'call')} with acknowledgements refused: INVALID_RECORD_STATE."
    )
    return "warning", summary


def _lag_growing(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    grown = episode.number("growth")
    summary = (
        f"The lag of share group {episode.subject} grew by {count(grown, 'record')} to "
        f"{episode.number('lag'):,.0f} in {span(episode.length_ms)}."
    )
    return ("critical" if episode.length_ms >= limits["critical_minutes"] * 60_000 else "warning"), summary


def _no_members(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    minutes = episode.length_ms / 60_000
    if minutes < limits["minutes"]:
        return None
    lag = count(episode.number("lag"), "record")
    summary = f"Share group {episode.subject} had no members for {span(episode.length_ms)} and {lag} waiting."
    return ("critical" if minutes >= limits["critical_minutes"] else "warning"), summary


def _session_reset(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    calls = episode.number("calls")
    if calls < limits["calls"]:
        return None
    summary = f"Client {episode.subject} lost its share session {times(calls)}: {name_counts(episode.named['errors'])}."
    return ("warning" if calls >= limits["warning_calls"] else "info"), summary


def _moved(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    records = episode.number("records")
    if records < limits["records"]:
        return None
    summary = (
        f"{count(records, 'record')} of share group {episode.subject} were taken from their members: "
        f"{name_counts(episode.named['reasons'])}."
    )
    return "info", summary


RULES = (
    Rule(
        "share_lock_expired",
        "warning; critical from `critical_records` on",
        "share_member",
        "A member kept records longer than their lock, without renewal: it hangs, or its work takes longer than the "
        "lock.",
        _DELIVERIES,
        (
            _ONE_RECORD,
            Threshold(
                "critical_records",
                1000,
                "records",
                "half of group.share.partition.max.record.locks (2000): a partition with that many locks hands out no "
                "more",
            ),
        ),
        "Take a thread dump of the member. If the work is long, let it acknowledge with RENEW, fetch less at a time "
        f"(max.poll.records), or lengthen the lock: {_CONFIG} share.record.lock.duration.ms=60000.",
        _lock_expired,
    ),
    Rule(
        "share_redelivery_storm",
        "warning; critical from `critical_share` on",
        "share_group",
        "Much of what a group acquires it had acquired before.",
        _MINUTES,
        (
            Threshold("share", 0.25, "of the records of a minute", "a quarter of the work is done twice"),
            Threshold("critical_share", 0.5, "of the records", "the group does old work more than new"),
            Threshold("acquired", 100, "records in the minute", "with fewer, one batch decides"),
        ),
        "Look at share_lock_expired, share_member_disconnected and released records of the same time for the cause; "
        f"{_DESCRIBE} --members shows who is there.",
        _redelivery_storm,
    ),
    Rule(
        "share_poison_record",
        "warning; critical from `critical_records` on",
        "share_partition",
        "A record was released or left over until the delivery limit, and the broker gave it up: nobody processed it.",
        _DELIVERIES,
        (
            Threshold("records", 1, "records", "nobody sees a record again that was given up"),
            Threshold(
                "critical_records", 100, "records", "one bad record is a bad record, a hundred are a broken consumer"
            ),
        ),
        "Read the records by offset (kafka-console-consumer.sh --topic T --partition P --offset N --max-messages 1) "
        "and see why members release them; have the application reject what it can never process. The limit is "
        "share.delivery.count.limit of the group, group.share.delivery.count.limit (5) of the broker.",
        _poison_record,
    ),
    Rule(
        "share_rejected",
        "info; warning from `warning_records` on",
        "share_partition",
        "Members rejected records: the application's own decision, and final.",
        _DELIVERIES,
        (
            Threshold("records", 1, "records", "each is gone for this group"),
            Threshold("warning_records", 100, "records", "a bad record now and then is expected, so many are not"),
        ),
        "See in the application's log why it rejects them, and whether the producer of the topic changed its format.",
        _rejected,
    ),
    Rule(
        "share_near_limit",
        "warning",
        "share_group",
        "Records were delivered so often that the broker will soon give them up.",
        _MINUTES,
        (Threshold("records", 1, "records", "one or two deliveries are left before nobody sees them again"),),
        f"Find out why they come back before they are given up; to win time, raise the limit: {_CONFIG} "
        "share.delivery.count.limit=10 (the most that group.share.max.delivery.count.limit allows by default).",
        _near_limit,
    ),
    Rule(
        "share_member_disconnected",
        "warning",
        "share_member",
        "A member's connection ended while it held records, and its session was not closed: a crash, a kill, a "
        "network cut.",
        _DELIVERIES,
        (_ONE_RECORD,),
        "Look at the member's process: out of memory, killed by its supervisor, a load balancer that closes "
        "connections. What it had finished and not acknowledged is done twice: acknowledge in smaller steps "
        "(commitSync), close the consumer on shutdown.",
        _disconnected,
    ),
    Rule(
        "share_standing_still",
        "warning; critical where the group's lag grows meanwhile",
        "share_partition",
        "A partition had records waiting or held, and none of them was finished.",
        _MINUTES,
        (
            Threshold(
                "minutes",
                2,
                "minutes in a row",
                "twice group.share.max.record.lock.duration.ms (60 s): what one member left is with the next by then",
            ),
        ),
        f"{_DESCRIBE} shows start offset and lag; --members --verbose shows who has the partition. If "
        "share.partition.max.record.locks (2000) records are held by members that hang, restart those.",
        _standing_still,
    ),
    Rule(
        "share_slow_acknowledgement",
        "warning",
        "share_group",
        "Acknowledgements come so late in the lock that a little more load makes locks expire.",
        ("share_deliveries", "share_group_health"),
        (
            Threshold("lock_share", 0.8, "of the lock", "a fifth is left for the network and a garbage collection"),
            Threshold("slow_share", 0.05, "of the records of a minute", "that is, the 95th percentile lies beyond it"),
            Threshold("acknowledged", 100, "records in the minute", "with fewer, one batch decides"),
        ),
        "Fetch less at a time (max.poll.records, or share.acquire.mode=record_limit), acknowledge each record when it "
        f"is done (share.acknowledgement.mode=explicit), or lengthen the lock: {_CONFIG} "
        "share.record.lock.duration.ms=60000.",
        _slow_acknowledgement,
    ),
    Rule(
        "share_refused_acknowledgements",
        "warning",
        "client",
        "The broker refused acknowledgements: the member no longer held the records, and others do the same work.",
        ("api_errors",),
        (Threshold("calls", 1, "calls", "each is work that was done and did not count"),),
        "The member was too late: see share_lock_expired for its group. Handle the exceptions that the "
        "AcknowledgementCommitCallback gets, and make the work idempotent.",
        _refused,
    ),
    Rule(
        "share_lag_growing",
        "warning; critical from `critical_minutes` on",
        "share_group",
        "More arrives than the group finishes. Known where somebody asked (DescribeShareGroupOffsets).",
        _MINUTES,
        (
            Threshold("records", 1000, "records", "less is a burst that two fetches take (max.poll.records is 500)"),
            Threshold("minutes", 5, "minutes", "bursts are shorter"),
            Threshold("critical_minutes", 60, "minutes", "an hour of it is no burst"),
        ),
        f"Add members: a share group takes more members than partitions. {_DESCRIBE} shows the lag by partition. Look "
        "for share_lock_expired and share_redelivery_storm first: work done twice is capacity lost.",
        _lag_growing,
    ),
    Rule(
        "share_no_members",
        "warning; critical from `critical_minutes` on",
        "share_group",
        "Records wait for a group that nobody is in.",
        _MINUTES,
        (
            Threshold(
                "minutes", 1, "minutes", "longer than group.share.session.timeout.ms (45 s): no restart in flight"
            ),
            Threshold("critical_minutes", 10, "minutes", "a deployment is done by then"),
        ),
        "Start the application, or delete the group if it is not wanted: kafka-share-groups.sh --bootstrap-server "
        "BROKER --delete --group {group}.",
        _no_members,
    ),
    Rule(
        "share_session_reset",
        "info; warning from `warning_calls` on",
        "client",
        "Brokers did not know a client's share session any more, or not its epoch. It opens a new one; its records "
        "came free.",
        ("api_errors",),
        (
            Threshold("calls", 1, "calls", "one follows each restart of a broker"),
            Threshold(
                "warning_calls", 10, "calls", "more than a rolling restart explains: the session cache is too small"
            ),
        ),
        "If no broker restarted: compare the number of members with group.share.max.share.sessions (2000) on each "
        "broker.",
        _session_reset,
    ),
    Rule(
        "share_moved",
        "info",
        "share_group",
        "Records were taken from members by a leader change, altered or deleted offsets, or an evicted session.",
        _DELIVERIES,
        (_ONE_RECORD,),
        "Compare with restarts of brokers and with kafka-share-groups.sh --reset-offsets of that time; the records "
        "are delivered again.",
        _moved,
    ),
)
