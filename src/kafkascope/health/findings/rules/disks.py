"""The rules about log directories: thresholds with reasons, the summary and advice of each finding."""

from kafkascope.formatting import count, percent, size, span
from kafkascope.health.findings.episodes import Episode
from kafkascope.health.findings.rules.rule import Limits, Rule, Threshold
from kafkascope.health.findings.words import name_counts, nodes, quoted, times

_HEALTH = ("log_health",)
_CHECK = "`kafkascope log FOLDER --check`"
_COPY = "stop the broker, move the partition's folder away, and start it: it copies the partition from the leader."


def _where(episode: Episode) -> str:
    """`orders-0` on node `2`, with names in backticks."""
    if episode.subjects > 1:
        return f"{count(episode.subjects, 'replica')} of cluster {quoted(episode.subject)}"
    partition, _, node = episode.subject.partition(" on ")
    return f"{quoted(partition)} on {nodes([node.partition(' of cluster ')[0]])}"


def _what(episode: Episode) -> str:
    if episode.subjects > 1:
        return f"{count(episode.subjects, 'partition')} of cluster {quoted(episode.subject)}"
    return quoted(episode.subject.partition(" of cluster ")[0].partition(" at ")[0])


def _damaged(episode: Episode, limits: Limits) -> str | None:
    if episode.number("places") < limits["places"]:
        return None
    damaged = episode.number("damaged_bytes")
    what = [count(episode.number("bad_crc"), "batch", "batches") + " with a wrong checksum"] * bool(
        episode.number("bad_crc")
    )
    what += [f"{size(int(damaged))} that can't be read"] * bool(damaged)
    return f"The log of {_where(episode)} is damaged: {' and '.join(what) or 'records of unknown types'}."


def _differ(episode: Episode, limits: Limits) -> str | None:
    batches = episode.number("batches")
    if batches < limits["batches"]:
        return None
    first = episode.samples("offsets")[0]
    return (
        f"{count(batches, 'batch', 'batches')} of {_where(episode)} differ from other replicas, from offset"
        f" {quoted(first)} on."
    )


def _short(episode: Episode, limits: Limits) -> str | None:
    records = episode.number("records")
    if records < limits["records"]:
        return None
    return f"The log of {_where(episode)} ends {count(records, 'record')} before that of another replica."


def _compaction(episode: Episode, limits: Limits) -> str | None:
    whole, dropped = episode.number("bytes"), episode.number("superseded_bytes")
    if dropped < limits["bytes"] or dropped < limits["share"] * whole:
        return None
    return (
        f"{percent(dropped / whole)} of the records of {_where(episode)} are superseded by later ones but not yet"
        f" removed: {size(int(dropped))}."
    )


def _leaderless(episode: Episode, limits: Limits) -> str | None:
    still = episode.number("still")
    if episode.length_ms < limits["ms"]:
        return None
    lasted = f"for {span(episode.length_ms)}" + (", up to the end of the log" if still else "")
    return f"{_what(episode)} had no leader {lasted}."


def _under_replicated(episode: Episode, limits: Limits) -> str | None:
    if episode.length_ms < limits["ms"]:
        return None
    missing = nodes(episode.named["missing"])
    return f"{_what(episode)} had replicas out of sync for {span(episode.length_ms)}: {missing}."


def _changes(episode: Episode, limits: Limits) -> str | None:
    changes = episode.number("changes")
    if changes < limits["changes"]:
        return None
    return (
        f"The leader of {_what(episode)} changed {times(changes)} in {span(episode.length_ms)}; new leaders:"
        f" {nodes(episode.named['leaders'])}."
    )


def _transaction(episode: Episode) -> str:
    ids, producers = episode.named["transactional_ids"], episode.named["producers"]
    return f"transactional id {name_counts(ids)}" if ids else f"producer {name_counts(producers)}"


def _hanging(episode: Episode, limits: Limits) -> str | None:
    if episode.number("open_ms") < limits["ms"]:
        return None
    return (
        f"A transaction in {_what(episode)} hangs: its coordinator doesn't know it, so nothing will end it"
        f" ({_transaction(episode)}). Readers of committed records wait at offset"
        f" {quoted(episode.samples('offsets')[0])}, {count(episode.number('waiting'), 'record')} before the end."
    )


def _open(episode: Episode, limits: Limits) -> str | None:
    lasted = episode.number("open_ms")
    if lasted < limits["ms"]:
        return None
    return (
        f"A transaction in {_what(episode)} was open for {span(lasted)} ({_transaction(episode)}). Readers of committed"
        f" records wait at offset {quoted(episode.samples('offsets')[0])}."
    )


def _silent(episode: Episode, limits: Limits) -> str | None:
    silent = episode.number("silent_ms")
    if silent < limits["days"] * 86_400_000:
        return None
    lag = episode.number("lag")
    waiting = f"; {count(lag, 'record')} waited" if lag else ""
    return f"Group {quoted(episode.subject)} hasn't committed for {_long(silent)}{waiting}."


def _long(ms: float) -> str:
    days = round(ms / 86_400_000)
    return count(days, "day") if days > 2 else span(ms)


def _gone(episode: Episode, limits: Limits) -> str | None:
    topics = episode.named["topics"]
    if len(topics) < limits["topics"]:
        return None
    return f"Group {quoted(episode.subject)} has offsets of topics that don't exist: {name_counts(topics)}."


def _share_state(episode: Episode, limits: Limits) -> str | None:
    recorded, written = episode.number("only_recorded"), episode.number("only_written")
    if recorded + written < limits["records"]:
        return None
    group, _, partition = episode.subject.partition("/")
    where = f"{quoted(partition)} of share group {quoted(group)}" if partition else f"share group {quoted(group)}"
    parts = [f"{count(recorded, 'record')} only in the recording"] * bool(recorded)
    parts += [f"{count(written, 'record')} only on disk"] * bool(written)
    return (
        f"Recorded deliveries and the brokers' share state of {where} differ: {' and '.join(parts)}; offsets"
        f" {quoted(', '.join(episode.samples('offsets')[:3]))}."
    )


RULES = (
    Rule(
        "log_damaged",
        "critical",
        "replica_log",
        "A replica's log has batches with a wrong checksum, or bytes that can't be read.",
        _HEALTH,
        (Threshold("places", 1, "places", "an intact log has none"),),
        f"List the places: {_CHECK}. If other replicas are intact: {_COPY}",
        _damaged,
    ),
    Rule(
        "log_replicas_differ",
        "critical",
        "replica_log",
        "Replicas have different bytes at the same offsets, where compaction hasn't rewritten them.",
        _HEALTH,
        (Threshold("batches", 1, "batches", "replicas copy whole batches"),),
        "After an unclean election this is expected, and records are lost. Otherwise compare the replicas with"
        f" `kafkascope log FOLDER --json` before retention removes them, then {_COPY}",
        _differ,
    ),
    Rule(
        "log_replica_short",
        "warning",
        "replica_log",
        "A replica's log ends before that of another.",
        _HEALTH,
        (Threshold("records", 10_000, "records", "disks that are copied one after another differ by seconds of "
                   "traffic"),),
        "Is the broker running, and the replica in sync?"
        " `kafka-topics.sh --bootstrap-server BROKER --describe --under-replicated-partitions`.",
        _short,
    ),
    Rule(
        "log_compaction_behind",
        "warning",
        "replica_log",
        "A partition of Kafka's own topics has many records that compaction would drop. Coordinators read them all "
        "when they start.",
        ("compaction_waste",),
        (
            Threshold("bytes", 100e6, "bytes", "the size of a segment of these topics, which is never compacted while "
                      "it's written"),
            Threshold("share", 0.5, "of the bytes", "`min.cleanable.dirty.ratio`: compaction begins there"),
        ),
        "Does the log cleaner run? Its thread ends after an error: search `log-cleaner.log` of that broker, and restart"
        " it.",
        _compaction,
    ),
    Rule(
        "log_share_state_differs",
        "warning",
        "share_partition",
        "Recorded deliveries of a share partition and the share state that brokers wrote don't match.",
        ("share_agreement",),
        (Threshold("records", 1, "records", "brokers write the end of every delivery"),),
        "Is the recording complete (`recording_lost`), and of the same time as the disks? The offsets are in the mart"
        " `share_agreement`. To see what brokers wrote: `kafkascope log FOLDER --topic __share_group_state`.",
        _share_state,
    ),
    Rule(
        "partition_leaderless",
        "critical",
        "partition",
        "A partition had no leader.",
        ("metadata_at",),
        (Threshold("ms", 5000, "ms", "an election takes less time, and partitions of a stopped cluster end without a "
                   "leader"),),
        "Bring back a replica that is in sync:"
        " `kafka-topics.sh --bootstrap-server BROKER --describe --unavailable-partitions`.",
        _leaderless,
    ),
    Rule(
        "partition_under_replicated",
        "warning",
        "partition",
        "Some replicas of a partition weren't in sync.",
        ("metadata_at",),
        (Threshold("ms", 300_000, "ms", "restarting a broker takes minutes"),),
        "`kafka-topics.sh --bootstrap-server BROKER --describe --under-replicated-partitions`; then check the log of"
        " the missing broker.",
        _under_replicated,
    ),
    Rule(
        "partition_leader_changes",
        "warning",
        "partition",
        "The leader of a partition changed often.",
        ("partition_events",),
        (
            Threshold("changes", 6, "changes", "a rolling restart of three brokers makes up to four"),
            Threshold("minutes", 60, "minutes", "the period in which they count"),
        ),
        "Do brokers lose their sessions? `kafkascope describe cluster BROKER`; long pauses of a broker's JVM and an"
        " unstable network are the usual causes.",
        _changes,
    ),
    Rule(
        "transaction_hanging",
        "critical",
        "partition",
        "A transaction has no marker, and its coordinator has no unfinished transaction with that partition.",
        ("open_transactions",),
        (Threshold("ms", 60_000, "ms", "markers are written within seconds of the end of a transaction"),),
        "`kafka-transactions.sh --bootstrap-server BROKER find-hanging --topic {topic}`, then"
        " `kafka-transactions.sh --bootstrap-server BROKER abort --topic {topic} --partition {partition} --start-offset"
        " {offset}`.",
        _hanging,
    ),
    Rule(
        "transaction_open",
        "warning",
        "partition",
        "A transaction was open for a long time and held back the last stable offset.",
        ("open_transactions",),
        (Threshold("ms", 900_000, "ms", "`transaction.max.timeout.ms`: no client may ask for more by default"),),
        "Find the producer: `kafka-transactions.sh --bootstrap-server BROKER describe-producers --topic {topic}"
        " --partition {partition}`. The coordinator aborts it after its timeout.",
        _open,
    ),
    Rule(
        "group_silent",
        "info",
        "group",
        "A group with committed offsets or share state has been inactive for a long time.",
        ("dead_groups",),
        (Threshold("days", 7, "days", "`offsets.retention.minutes`: a group without members loses its offsets then"),),
        "If nobody needs it: `kafka-consumer-groups.sh --bootstrap-server BROKER --delete --group {group}`; for a share"
        " group: `kafka-share-groups.sh --bootstrap-server BROKER --delete --group {group}`.",
        _silent,
    ),
    Rule(
        "group_topics_gone",
        "info",
        "group",
        "A group has offsets of a topic that no longer exists.",
        ("dead_groups",),
        (Threshold("topics", 1, "topics", "brokers delete these offsets with the topic"),),
        "Was the topic deleted while the group's coordinator was unavailable? `kafka-consumer-groups.sh"
        " --bootstrap-server BROKER --describe --group {group}`.",
        _gone,
    ),
)  # fmt: skip
NAMES = frozenset(rule.name for rule in RULES)
