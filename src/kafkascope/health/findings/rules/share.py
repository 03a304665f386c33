"""The rules about share groups: thresholds with reasons, the summary and advice of each finding."""

from kafkascope.formatting import count, percent, span
from kafkascope.health.findings.episodes import Episode
from kafkascope.health.findings.rules.rule import Limits, Rule, SeverityAndSummary, Threshold
from kafkascope.health.findings.words import counted, name_counts, quoted, times, words_with_counts

_DELIVERIES, _MINUTES = ("share_deliveries",), ("share_group_health",)
_DESCRIBE = "`kafkascope describe share-group BROKER {group}`"
_CONFIG = "kafka-configs.sh --bootstrap-server BROKER --alter --entity-type groups --entity-name {group} --add-config"
_ONE_RECORD = Threshold("records", 1, "records", "one record is one job done late or twice")


def _group(name: str) -> str:
    return f"share group {quoted(name)}"


def _member(episode: Episode) -> str:
    if episode.subjects > 1:
        return f"{episode.subjects} members of {_group(episode.group)}"
    client = max(episode.named["clients"], default=None)
    return f"Member {quoted(client or episode.subject.rpartition('/')[2])} of {_group(episode.group)}"


def _partition(episode: Episode) -> str:
    if episode.subjects > 1:
        return f"{episode.subjects} partitions"
    return quoted(episode.subject.removeprefix(episode.group + "/"))


def _redelivered(episode: Episode) -> str:
    to = episode.named["redelivered_to"]
    return f"; redelivered to {counted(to)}" if to else ""


def _lock_expired(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    records = episode.number("records")
    if records < limits["records"]:
        return None
    lock = span(episode.number("lock_timeout_ms"))
    went = _redelivered(episode) or "; no redelivery was recorded"
    its = "its" if records == 1 else "their"
    summary = f"{_member(episode)} held {count(records, 'record')} past {its} {lock} lock{went}."
    return ("critical" if records >= limits["critical_records"] else "warning"), summary


def _redelivery_storm(episode: Episode, limits: Limits) -> SeverityAndSummary:
    acquired, again = episode.number("acquired"), episode.number("redelivered")
    summary = (
        f"{percent(again / acquired)} of the records that {_group(episode.subject)} acquired were redeliveries: "
        f"{again:,.0f} of {acquired:,.0f}."
    )
    return ("critical" if again / acquired >= limits["critical_share"] else "warning"), summary


def _poison_record(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    records = episode.number("records")
    if records < limits["records"]:
        return None
    offsets = ", ".join(episode.samples("offsets")[:5])
    what = count(records, "record")
    if episode.subjects == 1:
        what = f"{'Offset' if records == 1 else 'Offsets'} {quoted(offsets)}"
    was = "was" if records == 1 else "were"
    deliveries = count(episode.number("delivery_count"), "delivery", "deliveries")
    summary = (
        f"{what} of {_partition(episode)} {was} archived after {deliveries} to {_group(episode.group)}; "
        f"last outcome: {words_with_counts(episode.named['last_outcome'])}."
    )
    return ("critical" if records >= limits["critical_records"] else "warning"), summary


def _rejected(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    records = episode.number("records")
    if records < limits["records"]:
        return None
    clients = episode.named["clients"]
    who = f"Member {quoted(next(iter(clients)))}" if len(clients) == 1 else "Members"
    each = f": {counted(clients)}" if len(clients) > 1 else ""
    what = f"{count(records, 'record')} of {_partition(episode)}"
    summary = f"{who} of {_group(episode.group)} rejected {what} for good{each}."
    return ("warning" if records >= limits["warning_records"] else "info"), summary


def _near_limit(episode: Episode, limits: Limits) -> str | None:
    records = episode.number("records")
    if records < limits["records"]:
        return None
    deliveries = count(records, "delivery", "deliveries")
    return f"Share group {quoted(episode.subject)} had {deliveries} with at most one more left before the limit."


def _disconnected(episode: Episode, limits: Limits) -> str | None:
    records = episode.number("records")
    if records < limits["records"]:
        return None
    return f"{_member(episode)} lost its connection while it held {count(records, 'record')}{_redelivered(episode)}."


def _standing_still(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    minutes, grown = episode.number("minutes"), episode.number("lag_growth")
    if minutes < limits["minutes"]:
        return None
    lag = f" while the group's lag grew by {count(grown, 'record')}" if grown > 0 else ""
    summary = f"{_partition(episode)} of {_group(episode.group)} made no progress for {minutes:,.0f} min{lag}."
    return ("critical" if grown > 0 else "warning"), summary


def _slow_acknowledgement(episode: Episode, limits: Limits) -> str | None:
    slow, acknowledged = episode.number("slow"), episode.number("acknowledged")
    return (
        f"Share group {quoted(episode.subject)} acknowledged {percent(slow / acknowledged)} of "
        f"{count(acknowledged, 'record')} after {percent(limits['lock_share'])} or more of their "
        f"{span(episode.number('lock_timeout_ms'))} lock: {counted(episode.named['clients'])}; slowest "
        f"{span(episode.number('slowest_ms'))}."
    )


def _refused(episode: Episode, limits: Limits) -> str | None:
    calls = episode.number("calls")
    if calls < limits["calls"]:
        return None
    what = "acknowledgements refused (`INVALID_RECORD_STATE`)"
    return f"Client {quoted(episode.subject)} had {what} in {count(calls, 'call')}."


def _lag_growing(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    grown = episode.number("growth")
    summary = (
        f"The lag of {_group(episode.subject)} grew by {count(grown, 'record')} in {span(episode.length_ms)}, to "
        f"{episode.number('lag'):,.0f}."
    )
    return ("critical" if episode.length_ms >= limits["critical_minutes"] * 60_000 else "warning"), summary


def _no_members(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    minutes = episode.length_ms / 60_000
    if minutes < limits["minutes"]:
        return None
    lag = count(episode.number("lag"), "record")
    summary = f"Share group {quoted(episode.subject)} had no members for {span(episode.length_ms)} while {lag} waited."
    return ("critical" if minutes >= limits["critical_minutes"] else "warning"), summary


def _session_reset(episode: Episode, limits: Limits) -> SeverityAndSummary | None:
    calls = episode.number("calls")
    if calls < limits["calls"]:
        return None
    errors = name_counts(episode.named["errors"])
    summary = f"Client {quoted(episode.subject)} lost its share session {times(calls)}: {errors}."
    return ("warning" if calls >= limits["warning_calls"] else "info"), summary


def _moved(episode: Episode, limits: Limits) -> str | None:
    records = episode.number("records")
    if records < limits["records"]:
        return None
    was = "was" if records == 1 else "were"
    return (
        f"{count(records, 'record')} of {_group(episode.subject)} {was} taken from the members that held "
        f"{'it' if records == 1 else 'them'}; reason: {words_with_counts(episode.named['reasons'])}."
    )


RULES = (
    Rule(
        "share_lock_expired",
        "warning; critical from `critical_records` on",
        "share_member",
        "A member held records longer than their lock without renewing it: it hangs, or its work takes longer than "
        "the lock.",
        _DELIVERIES,
        (
            _ONE_RECORD,
            Threshold(
                "critical_records",
                1000,
                "records",
                "half of `group.share.partition.max.record.locks` (2000): at that many locks a partition delivers "
                "nothing more",
            ),
        ),
        "Take a thread dump of the member: `jcmd PID Thread.print`. If the work takes that long, acknowledge with "
        f"RENEW, fetch less at a time (`max.poll.records`), or lengthen the lock: `{_CONFIG} "
        "share.record.lock.duration.ms=60000`.",
        _lock_expired,
    ),
    Rule(
        "share_redelivery_storm",
        "warning; critical from `critical_share` on",
        "share_group",
        "A large share of what a group acquires was delivered before.",
        _MINUTES,
        (
            Threshold("share", 0.25, "of the records of a minute", "a quarter of the work is done twice"),
            Threshold("critical_share", 0.5, "of the records", "the group repeats more work than it does"),
            Threshold("acquired", 100, "records in the minute", "with fewer, one batch decides"),
        ),
        "Look for the cause in `share_lock_expired`, `share_member_disconnected` and released records of the same "
        "time. "
        f"Who is in the group now: {_DESCRIBE}.",
        _redelivery_storm,
    ),
    Rule(
        "share_poison_record",
        "warning; critical from `critical_records` on",
        "share_partition",
        "No member processed a record until the delivery limit was reached, so the broker archived it.",
        _DELIVERIES,
        (
            Threshold("records", 1, "records", "an archived record is never delivered again"),
            Threshold(
                "critical_records", 100, "records", "one bad record is a bad record, a hundred are a broken consumer"
            ),
        ),
        "Read the record: `kafka-console-consumer.sh --bootstrap-server BROKER --topic {topic} --partition "
        "{partition} --offset {offset} --max-messages 1`. Find out why members release it, and have the application "
        "reject what it can never process. The limit is `share.delivery.count.limit` of the group, "
        "`group.share.delivery.count.limit` (5) of the broker. If the group has a dead-letter queue "
        "(`errors.deadletterqueue.topic.name`, Kafka 4.4), look for a copy there: the recording doesn't show if it "
        "was written.",
        _poison_record,
    ),
    Rule(
        "share_rejected",
        "info; warning from `warning_records` on",
        "share_partition",
        "Members rejected records. That is the application's own decision, and final.",
        _DELIVERIES,
        (
            Threshold("records", 1, "records", "each is lost to this group"),
            Threshold("warning_records", 100, "records", "a bad record now and then is expected, a hundred are not"),
        ),
        "See in the application's log why it rejects them, and whether the producer of the topic changed its format. "
        "If the group has a dead-letter queue (`errors.deadletterqueue.topic.name`, Kafka 4.4), look for a copy there.",
        _rejected,
    ),
    Rule(
        "share_near_limit",
        "warning",
        "share_group",
        "Records are close to the delivery limit: the broker archives them soon.",
        _MINUTES,
        (Threshold("records", 1, "records", "one or two deliveries are left before the record is archived"),),
        f"Find out why they are redelivered. To gain time, raise the limit: `{_CONFIG} share.delivery.count.limit=10` "
        "(the maximum that `group.share.max.delivery.count.limit` allows by default).",
        _near_limit,
    ),
    Rule(
        "share_member_disconnected",
        "warning",
        "share_member",
        "A member's connection ended while it held records, and its session wasn't closed: it crashed, was killed, or "
        "the network failed.",
        _DELIVERIES,
        (_ONE_RECORD,),
        "Look at the member's process: out of memory, killed by its supervisor, a load balancer that closes "
        "connections. Finished work that wasn't acknowledged is done twice: acknowledge in smaller steps "
        "(`commitSync`), "
        f"and close the consumer on shutdown. Who is in the group now: {_DESCRIBE}.",
        _disconnected,
    ),
    Rule(
        "share_standing_still",
        "warning; critical if the group's lag grows meanwhile",
        "share_partition",
        "A partition had records waiting or held, and made no progress.",
        _MINUTES,
        (
            Threshold(
                "minutes",
                2,
                "minutes in a row",
                "twice `group.share.max.record.lock.duration.ms` (60 s): the next member has it by then",
            ),
        ),
        f"Start offsets, lag, and which member has the partition: {_DESCRIBE}. If members that hang hold "
        "`share.partition.max.record.locks` (2000) records, restart them.",
        _standing_still,
    ),
    Rule(
        "share_slow_acknowledgement",
        "warning",
        "share_group",
        "Acknowledgements come late in the lock: with a little more load, locks expire.",
        ("share_deliveries", "share_group_health"),
        (
            Threshold("lock_share", 0.8, "of the lock", "a fifth is left for the network and a garbage collection"),
            Threshold("slow_share", 0.05, "of the records of a minute", "so the 95th percentile is beyond it"),
            Threshold("acknowledged", 100, "records in the minute", "with fewer, one batch decides"),
        ),
        "Fetch less at a time (`max.poll.records`, or `share.acquire.mode=record_limit`), acknowledge each record "
        "when it "
        f"is done (`share.acknowledgement.mode=explicit`), or lengthen the lock: `{_CONFIG} "
        "share.record.lock.duration.ms=60000`.",
        _slow_acknowledgement,
    ),
    Rule(
        "share_refused_acknowledgements",
        "warning",
        "client",
        "The broker refused acknowledgements: the member no longer held the records, so others repeat the work.",
        ("api_errors",),
        (Threshold("calls", 1, "calls", "each is work that was done and doesn't count"),),
        "The member was too late: see `share_lock_expired` of its group. Handle the exceptions that "
        "`AcknowledgementCommitCallback` receives, and make the work idempotent.",
        _refused,
    ),
    Rule(
        "share_lag_growing",
        "warning; critical from `critical_minutes` on",
        "share_group",
        "More records arrive than the group finishes. Known if the recording has `DescribeShareGroupOffsets`.",
        _MINUTES,
        (
            Threshold("records", 1000, "records", "less is a burst that two fetches take (`max.poll.records` is 500)"),
            Threshold("minutes", 5, "minutes", "bursts are shorter"),
            Threshold("critical_minutes", 60, "minutes", "an hour isn't a burst"),
        ),
        "Look for `share_lock_expired` and `share_redelivery_storm` first: work done twice is capacity lost. Then add "
        f"members: a share group can have more members than partitions. The lag by partition: {_DESCRIBE}.",
        _lag_growing,
    ),
    Rule(
        "share_no_members",
        "warning; critical from `critical_minutes` on",
        "share_group",
        "Records wait for a group without members: nobody processes them until one joins.",
        _MINUTES,
        (
            Threshold("minutes", 1, "minutes", "longer than `group.share.session.timeout.ms` (45 s), so not a restart"),
            Threshold("critical_minutes", 10, "minutes", "a deployment is done by then"),
        ),
        "Start the application. If nobody needs the group, delete it: `kafka-share-groups.sh --bootstrap-server BROKER "
        "--delete --group {group}`.",
        _no_members,
    ),
    Rule(
        "share_session_reset",
        "info; warning from `warning_calls` on",
        "client",
        "Brokers no longer knew a client's share session or its epoch. The client opens a new session; the records "
        "that it held are released.",
        ("api_errors",),
        (
            Threshold("calls", 1, "calls", "one follows each restart of a broker"),
            Threshold(
                "warning_calls", 10, "calls", "more than a rolling restart explains: the session cache is too small"
            ),
        ),
        "If no broker restarted, compare the number of members with `group.share.max.share.sessions` (2000) on each "
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
        "Compare with the times of broker restarts and offset resets (`kafka-share-groups.sh`). The records are "
        "redelivered.",
        _moved,
    ),
)
