"""Describes incidents of groups: a member that hung or crashed, a poison record, an application that stopped."""

from kafkascope.formatting import count, span
from kafkascope.health.findings.diagnosis import Finding
from kafkascope.health.findings.words import quoted
from kafkascope.health.incidents.account import (
    Account,
    command,
    counted,
    listed,
    names_in,
    number,
)
from kafkascope.health.incidents.facts import SAME_MOMENT_US, Facts
from kafkascope.health.incidents.stories import Story
from kafkascope.health.incidents.subjects import client_of, group_of


def member_hung(story: Story, facts: Facts) -> Account:
    held = [finding for finding in story.anchors if finding.rule == "share_lock_expired"]
    return _share_member_hung(story, held, facts) if held else _streams_member_hung(story, facts)


def _share_member_hung(story: Story, held: list[Finding], facts: Facts) -> Account:
    first = held[0]
    group, records = group_of(first) or "", sum(number(finding, "records") for finding in held)
    lock = span(max(number(finding, "lock_timeout_ms") for finding in held))
    late = any(number(finding, "refused_late") for finding in held) or any(
        finding.rule == "share_refused_acknowledgements" for _, finding in story.consequences
    )
    lengthen = command(
        "kafka-configs.sh --bootstrap-server",
        *(facts.brokers.of_group(group), "--alter", "--entity-type", "groups", "--entity-name", group),
        *("--add-config", "share.record.lock.duration.ms=60000"),
    )
    end = " It acknowledged them later and was refused: it was alive, but too slow for the lock." if late else ""
    twice = (
        "The broker delivered them to other members, so their work is done twice."
        if any("redelivered_to" in finding.figures for finding in held)
        else "The broker offers them to other members, which do the work again."
    )
    return Account(
        "member_hung",
        first.subject_kind,
        first.subject,
        f"{_member(first)} of share group {quoted(group)} kept {count(records, 'record')} past the lock of {lock}"
        f"{_redelivered(held)}.",
        f"It neither acknowledged nor renewed the records in time: it hangs, or its work takes longer than the lock. "
        f"{twice}{end}",
        "certain" if late else "likely",
        f"The application's log shows the work done within {lock}: then its acknowledgements were delayed on the way.",
        f"Take a thread dump of the member while it hangs (`jcmd PID Thread.print`). If the work takes that long, "
        f"lengthen the lock: {lengthen}, or acknowledge with `RENEW`.",
    )


def _streams_member_hung(story: Story, facts: Facts) -> Account:
    first = story.anchors[0]
    group, members = group_of(first) or "", max(number(finding, "members") for finding in story.anchors)
    describe = command("kafkascope describe streams-group", facts.brokers.of_group(group), group)
    return Account(
        "member_hung",
        first.subject_kind,
        first.subject,
        f"{count(members, 'member')} of streams group {quoted(group)} came back after the group had removed "
        f"{'it' if members == 1 else 'them'}.",
        "A member that was silent for longer than the session timeout lost its tasks and found out with its next "
        "heartbeat. It had paused, not crashed; what it did meanwhile doesn't count.",
        "certain",
        "The coordinator's log shows that it lost the group itself.",
        f"Look for long garbage collections or a suspended machine at the member. Who has which task now: {describe}.",
    )


def poison_record(story: Story, facts: Facts) -> Account:
    first = story.anchors[0]
    group, partition = group_of(first) or "", first.subject.rpartition("/")[2]
    records = sum(number(finding, "records") for finding in story.anchors)
    deliveries = max(number(finding, "delivery_count") for finding in story.anchors)
    offsets = [
        offset for finding in story.anchors for offset in str(finding.figures.get("offsets", "")).split(", ") if offset
    ]
    crowd = first.subject_kind == "share_group"
    where = "" if crowd else f" of {quoted(partition)}"
    which = count(records, "record")
    if len(offsets) == 1:
        which = f"{'Offset' if records == 1 else 'Offsets'} {quoted(offsets[0])}"
    was, it = ("were", "them") if records > 1 else ("was", "it")
    outcomes = {
        part.rpartition(" ")[0]
        for finding in story.anchors
        for part in str(finding.figures.get("last_outcome", "")).split(", ")
    }
    last = listed(names_in(first.figures["clients"])) if first.figures.get("clients") else "unknown"
    topic, _, index = ("TOPIC", "", "N") if crowd else partition.rpartition("-")
    read = command(
        "kafka-console-consumer.sh --bootstrap-server",
        *(facts.brokers.of_group(group), "--topic", topic, "--partition", index),
        *("--offset", offsets[0].partition("-")[0] if offsets else "N", "--max-messages", "1"),
    )
    released = outcomes == {"released"}
    return Account(
        "poison_record",
        first.subject_kind,
        first.subject,
        f"{which}{where} {was} archived after {count(deliveries, 'delivery', 'deliveries')}: no member of share group "
        f"{quoted(group)} processed {it}.",
        (
            f"Members released it one after another until the delivery limit; the last was {last}. "
            if released
            else "Members that received it hung, crashed or released it, until the delivery limit. "
        )
        + "The broker no longer delivers it to this group.",
        "certain" if released else "likely",
        "Another group processes the same record without trouble: then the members are at fault, not the record.",
        f"Read it: {read}. Have the application reject what it can never process, and log why.",
    )


def member_crashed(story: Story, facts: Facts) -> Account:
    first = story.anchors[0]
    return (
        _share_member_crashed(story, facts)
        if first.rule.startswith("share_")
        else _streams_member_crashed(story, facts)
    )


def _share_member_crashed(story: Story, facts: Facts) -> Account:
    first = story.anchors[0]
    group, records = group_of(first) or "", sum(number(finding, "records") for finding in story.anchors)
    describe = command("kafkascope describe share-group", facts.brokers.of_group(group), group)
    return Account(
        "member_crashed",
        first.subject_kind,
        first.subject,
        f"{_member(first)} of share group {quoted(group)} disappeared with {count(records, 'record')} in "
        f"hand{_redelivered(story.anchors)}.",
        "Its connection closed while it held records, and it had not left the group: the process was killed or "
        "crashed. Work that it had finished but not acknowledged is done twice.",
        "certain",
        "The member's process has run since before that time: then the network or a load balancer cut its connection.",
        f"Find out why the process ended: look at its log, its supervisor, and whether it ran out of memory. Who is "
        f"in the group now: {describe}.",
    )


def _streams_member_crashed(story: Story, facts: Facts) -> Account:
    first = story.anchors[0]
    group = group_of(first) or ""
    tasks = sum(number(finding, "active_tasks") for finding in story.anchors)
    silent = max(number(finding, "silent_ms") for finding in story.anchors)
    pauses = [
        (until or facts.recorded_until or since) - since
        for since, until in facts.unheld.get(group, ())
        if story.from_at - SAME_MOMENT_US <= since <= story.to_at
    ]
    owner = (
        f"; its {count(tasks, 'task')} had no owner for up to {span(max(pauses) / 1000)}" if pauses and tasks else ""
    )
    closed = "closed" in str(first.figures.get("how", ""))
    describe = command("kafkascope describe streams-group", facts.brokers.of_group(group), group)
    how = (
        "Its connection closed and it had sent no heartbeat to leave, as when a process is killed or crashes."
        if closed
        else "Its heartbeats stopped while its connection stayed open: the machine or the network failed, or it paused."
    )
    return Account(
        "member_crashed",
        first.subject_kind,
        first.subject,
        f"{_member(first)} of streams group {quoted(group)} disappeared without leaving the group{owner}.",
        f"{how} The group noticed {span(silent)} later; until then nobody else could take its tasks.",
        "certain" if closed else "likely",
        "The member's process has run since before that time: then its connection was cut.",
        "Find out why the process ended: look at its log, its supervisor, and whether it ran out of memory. A shorter "
        "`streams.session.timeout.ms` makes the group notice sooner, standby tasks make the takeover quick. Who has "
        f"which task now: {describe}.",
    )


def member_slow(story: Story, facts: Facts) -> Account:
    first = story.anchors[0]
    group, clients = first.subject, names_in(first.figures["clients"]) if first.figures.get("clients") else []
    records = sum(number(finding, "slow") for finding in story.anchors)
    slowest, lock = (
        span(max(number(finding, name) for finding in story.anchors)) for name in ("slowest_ms", "lock_timeout_ms")
    )
    lengthen = command(
        "kafka-configs.sh --bootstrap-server",
        *(facts.brokers.of_group(group), "--alter", "--entity-type", "groups", "--entity-name", group),
        *("--add-config", "share.record.lock.duration.ms=60000"),
    )
    who = f"Member{'s' if len(clients) > 1 else ''} {listed(clients)}" if clients else "Members"
    return Account(
        "member_slow",
        first.subject_kind,
        group,
        f"{who} of share group {quoted(group)} took up to {slowest} of the {lock} lock to acknowledge "
        f"{count(records, 'record')}.",
        "The acknowledgements came in time, but late: with a little more load the locks expire, and other members get "
        "the records while the work on them goes on.",
        "likely",
        "The broker responded slowly at that time: then the acknowledgements waited, not the work.",
        "Fetch less at a time (`max.poll.records`, or `share.acquire.mode=record_limit`), acknowledge each record when "
        f"it is done, or lengthen the lock: {lengthen}.",
    )


def _member(finding: Finding) -> str:
    subjects = number(finding, "subjects")
    if subjects > 1:
        return f"{subjects:.0f} members"
    return f"Member {quoted(client_of(finding) or finding.subject.rpartition('/')[2])}"


def _redelivered(findings: list[Finding]) -> str:
    receivers = [finding.figures["redelivered_to"] for finding in findings if "redelivered_to" in finding.figures]
    if not receivers:
        return ""
    to = counted(receivers[0]) if len(receivers) == 1 else "other members"
    were = "it was" if sum(number(finding, "records") for finding in findings) == 1 else "they were"
    return f"; {were} redelivered to {to}"
