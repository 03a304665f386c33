"""Renders the section on log directories: what the brokers themselves wrote down."""

from collections.abc import Iterator

from kafkascope.formatting import count, span
from kafkascope.markup import Child, Html, el
from kafkascope.report.charts.disks import bytes_figure, changes_figure
from kafkascope.report.charts.figure import empty, table, tiles
from kafkascope.report.page.links import Links
from kafkascope.report.summaries.disks import ChangedPartition, DiskBroker, Disks, ShareComparison
from kafkascope.report.words import number, share, size, when

_PLACE = "disks"
_NOTHING = "–"
_VERDICTS = {"only_recorded": "recorded, not on disk", "only_written": "on disk, not recorded"}


def disks_section(disks: Disks, links: Links) -> Html:
    return el(
        "section",
        el("h2", "Log directories", id=_PLACE),
        *(_content(disks, links) if disks.brokers else [empty("No log directory of a broker was read.")]),
        aria_labelledby=_PLACE,
    )


def _content(disks: Disks, links: Links) -> Iterator[Child]:
    yield tiles(_tiles(disks))
    yield links.about(_PLACE)
    if disks.shares is not None:
        yield _agreement(disks.shares)
    if disks.changes is not None:
        yield changes_figure(disks.changes)
        yield _part("Partitions that changed most", _partitions(disks))
    if any(broker.bytes for broker in disks.brokers):
        yield bytes_figure(disks.brokers)
    yield _part("Brokers", _brokers(disks))
    yield _part("Open transactions", _transactions(disks))
    yield _part("Groups by silence", _groups(disks))
    yield _part("What compaction would drop", _waste(disks))


def _part(title: str, content: Html) -> Html:
    return el("section", el("h3", title), content)


def _tiles(disks: Disks) -> list[tuple[str, str, str]]:
    brokers = disks.brokers
    replicas = sum(broker.partitions for broker in brokers)
    damaged = sum(broker.damaged_bytes for broker in brokers)
    bad = sum(broker.bad_crc for broker in brokers)
    differing = sum(broker.differing_batches for broker in brokers)
    holding = [row for row in disks.transactions if row.holds_stable_offset]
    hanging = sum(bool(row.hanging) for row in disks.transactions)
    changes = disks.changes
    leaders = sum(changes.steps.get("leader", ())) if changes is not None else 0
    return [
        ("brokers", number(len(brokers) + disks.brokers_left_out), f"read until {when(disks.read_at, 1_000_000)}"),
        ("on disk", size(sum(broker.bytes for broker in brokers)), count(replicas, "replica")),
        ("damaged", size(damaged) if damaged else "nothing", f"{count(bad, 'wrong checksum')}" if bad else ""),
        ("replicas differ", count(differing, "batch", "batches") if differing else "nowhere", ""),
        ("leader changes", number(leaders), count(changes.total, "change") + " in all" if changes else ""),
        ("open transactions", number(len(disks.transactions) + disks.transactions_left_out),
         f"{hanging} hanging, {len(holding)} hold readers back" if disks.transactions else ""),
    ]  # fmt: skip


def _agreement(shares: ShareComparison) -> Html:
    ends = shares.agree + shares.only_recorded + shares.only_written
    groups = count(len(shares.groups), "share group")
    if not shares.differences:
        sentence = f"The brokers' share state agrees with the recorded deliveries: all {number(ends)} ends of {groups}."
        return _part("Share state and recording", el("p", sentence, id="disks-agreement"))
    sentence = (
        f"The brokers' share state and the recorded deliveries differ in {number(ends - shares.agree)} of"
        f" {number(ends)} ends of {groups} ({share(ends - shares.agree, ends)})."
    )
    rows = [
        (
            f"{row.topic}-{row.partition}",
            el("code", row.group_id),
            number(row.first_offset),
            number(row.last_offset),
            number(row.delivery_count),
            row.state,
            _VERDICTS.get(row.verdict, row.verdict),
        )
        for row in shares.differences
    ]
    head = ("partition", "group", "first offset #", "last offset #", "delivery #", "state", "is")
    differing = table("Offsets that differ", head, rows, shares.differences_left_out, "ranges")
    return _part("Share state and recording", el("div", el("p", sentence, id="disks-agreement"), differing))


def _partitions(disks: Disks) -> Html:
    assert disks.changes is not None
    rows = [
        (
            f"{row.topic}-{row.partition}",
            number(row.leader_changes),
            number(row.isr_changes),
            "none" if row.leader is None else f"node {row.leader}",
            _nodes(row.isr),
            _missing(row),
            when(row.last_at),
        )
        for row in disks.changes.partitions
    ]
    head = (
        "partition",
        "leader changes #",
        "ISR changes #",
        "leader, last",
        "ISR, last",
        "out of sync",
        "last change (UTC)",
    )
    return table("Changes by partition", head, rows, disks.changes.partitions_left_out, "partitions")


def _nodes(nodes: list[int]) -> str:
    return ", ".join(map(str, nodes)) or _NOTHING


def _missing(row: ChangedPartition) -> str:
    return _nodes(sorted({*row.replicas} - {*row.isr}))


def _brokers(disks: Disks) -> Html:
    rows = [
        (
            "unknown" if row.broker is None else f"node {row.broker}",
            number(row.partitions),
            number(row.segments),
            size(row.bytes),
            number(row.records),
            _damage(row),
            number(row.differing_batches),
            number(row.missing_records),
        )
        for row in disks.brokers
    ]
    head = (
        "broker",
        "replicas #",
        "segments #",
        "bytes #",
        "records #",
        "damage",
        "differing batches #",
        "missing records #",
    )
    return table("Disks", head, rows, disks.brokers_left_out, "brokers")


def _damage(row: DiskBroker) -> str:
    parts = [size(row.damaged_bytes)] * bool(row.damaged_bytes)
    parts += [count(row.bad_crc, "wrong checksum")] * bool(row.bad_crc)
    parts += [count(row.quarantined, "place")] * bool(row.quarantined)
    return ", ".join(parts) or _NOTHING


def _transactions(disks: Disks) -> Html:
    if not disks.transactions:
        return empty("Every transaction has its marker.")
    rows = [
        (
            f"{row.topic}-{row.partition}",
            number(row.producer_id),
            el("code", row.transactional_id) if row.transactional_id else _NOTHING,
            row.coordinator_state or _NOTHING,
            "hangs" if row.hanging else "unknown" if row.hanging is None else "open",
            _NOTHING if row.open_ms is None else span(row.open_ms),
            number(row.first_offset),
            number(row.log_end_offset - row.first_offset) if row.holds_stable_offset else _NOTHING,
        )
        for row in disks.transactions
    ]
    head = ("partition", "producer id #", "transactional id", "coordinator", "is", "open for", "first offset #",
            "records held back #")  # fmt: skip
    return table("Transactions without a marker", head, rows, disks.transactions_left_out, "transactions")


def _groups(disks: Disks) -> Html:
    if not disks.groups:
        return empty("No group has committed an offset.")
    rows = [
        (
            el("code", row.group_id),
            row.group_type or _NOTHING,
            number(row.members),
            number(row.partitions),
            span(max(0, row.silent_ms)),
            when(row.last_commit_at),
            number(row.lag_now),
            ", ".join(row.topics_gone) or _NOTHING,
        )
        for row in disks.groups
    ]
    head = ("group", "type", "members #", "partitions #", "silent for", "last commit (UTC)", "lag #", "topics gone")
    return table("Groups, the longest silent first", head, rows, disks.groups_left_out, "groups")


def _waste(disks: Disks) -> Html:
    if not disks.waste:
        return empty("No records of Kafka's own topics were read.")
    rows = [
        (
            f"{row.topic}-{row.partition}",
            "unknown" if row.broker is None else f"node {row.broker}",
            number(row.records),
            size(row.bytes),
            number(row.superseded),
            share(row.superseded_bytes, row.bytes),
            number(row.expired_tombstones),
        )
        for row in disks.waste
    ]
    head = ("partition", "broker", "records #", "bytes #", "replaced #", "of the bytes #", "expired tombstones #")
    return table("Kafka's own topics", head, rows, disks.waste_left_out, "partitions")
