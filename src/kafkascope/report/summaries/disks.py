"""Summarizes log directories: brokers' disks, changes of partitions, open transactions, silent groups, what compaction
left, and whether the brokers' share state agrees with the recording."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from kafkascope.lake.home import Lake
from kafkascope.lake.read.mart_rows import rows
from kafkascope.report.summaries.buckets import Buckets, buckets_of
from kafkascope.report.summaries.scope import Scope

_MOST_BROKERS = 32
_MOST_TOPICS = 7
_MOST_ROWS = 40
_MOST_BUCKETS = 120
# Changes of one moment are a bar, not the whole picture.
_SHORTEST_US = 10_000_000
CHANGES = ("leader", "isr", "replicas")

_HEALTH = (
    "cluster_id broker topic partition replicas segments bytes records damaged_bytes bad_crc quarantined"
    " missing_records differing_batches latest_at"
).split()
_EVENTS = "cluster_id occurred_at kind topic partition to_leader to_isr to_replicas".split()
_TRANSACTIONS = (
    "cluster_id topic partition producer_id transactional_id coordinator_state hanging open_ms first_offset"
    " log_end_offset holds_stable_offset"
).split()
_GROUPS = "cluster_id group_id group_type members partitions topics_gone last_commit_at silent_ms lag_now".split()
_WASTE = "cluster_id broker topic partition records bytes superseded superseded_bytes expired_tombstones".split()
_AGREEMENT = "group_id topic topic_id partition first_offset last_offset delivery_count state verdict".split()


@dataclass(slots=True)
class DiskBroker:
    """What was read of one broker's disks. `topics` are bytes by topic, the largest of all disks."""

    cluster_id: str | None
    broker: int | None
    partitions: int = 0
    segments: int = 0
    bytes: int = 0
    records: int = 0
    damaged_bytes: int = 0
    bad_crc: int = 0
    quarantined: int = 0
    differing_batches: int = 0
    missing_records: int = 0
    topics: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class ChangedPartition:
    """`leader`, `isr` and `replicas` as of the last change; no leader is None."""

    cluster_id: str | None
    topic: str | None
    partition: int
    leader_changes: int = 0
    isr_changes: int = 0
    leader: int | None = None
    isr: list[int] = field(default_factory=list)
    replicas: list[int] = field(default_factory=list)
    last_at: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionChanges:
    """`steps` has numbers of changes by kind, one for each step of `buckets`."""

    buckets: Buckets
    total: int
    steps: dict[str, list[int]]
    partitions: tuple[ChangedPartition, ...]
    partitions_left_out: int


@dataclass(frozen=True, slots=True)
class HeldTransaction:
    """A transaction without a marker."""

    cluster_id: str | None
    topic: str
    partition: int
    producer_id: int
    transactional_id: str | None
    coordinator_state: str | None
    hanging: bool | None
    open_ms: int | None
    first_offset: int
    log_end_offset: int
    holds_stable_offset: bool


@dataclass(frozen=True, slots=True)
class SilentGroup:
    """A group, and for how long it hasn't committed."""

    cluster_id: str | None
    group_id: str
    group_type: str | None
    members: int | None
    partitions: int
    topics_gone: list[str]
    last_commit_at: int
    silent_ms: int
    lag_now: int | None


@dataclass(slots=True)
class WastedPartition:
    """What compaction would drop of a partition on a broker."""

    cluster_id: str | None
    broker: int | None
    topic: str
    partition: int
    records: int = 0
    bytes: int = 0
    superseded: int = 0
    superseded_bytes: int = 0
    expired_tombstones: int = 0


@dataclass(frozen=True, slots=True)
class DifferentRange:
    """Offsets of which the brokers wrote something else than was recorded."""

    group_id: str
    topic: str | None
    partition: int
    first_offset: int
    last_offset: int
    delivery_count: int | None
    state: str
    verdict: str


@dataclass(frozen=True, slots=True)
class ShareComparison:
    """Ends of deliveries by whether the brokers' share state has them."""

    groups: tuple[str, ...]
    agree: int
    only_recorded: int
    only_written: int
    differences: tuple[DifferentRange, ...]
    differences_left_out: int


@dataclass(frozen=True, slots=True)
class Disks:
    """`read_at` is the last time in the brokers' own topics; None without log directories."""

    read_at: int | None
    brokers: tuple[DiskBroker, ...]
    brokers_left_out: int
    changes: PartitionChanges | None
    transactions: tuple[HeldTransaction, ...]
    transactions_left_out: int
    groups: tuple[SilentGroup, ...]
    groups_left_out: int
    waste: tuple[WastedPartition, ...]
    waste_left_out: int
    shares: ShareComparison | None


def disks_in(lake: Lake, scope: Scope) -> Disks:
    read_at, brokers = _brokers(lake)
    transactions = [HeldTransaction(**row) for row in rows(lake, "open_transactions", _TRANSACTIONS)]
    transactions.sort(key=lambda row: (not row.hanging, not row.holds_stable_offset, -(row.open_ms or 0), row.topic))
    groups = [SilentGroup(**row) for row in rows(lake, "dead_groups", _GROUPS) if scope.takes(row["group_id"])]
    groups.sort(key=lambda row: (-row.silent_ms, row.group_id))
    waste = _waste(lake)
    return Disks(
        read_at,
        tuple(brokers[:_MOST_BROKERS]),
        max(0, len(brokers) - _MOST_BROKERS),
        _changes(lake, scope),
        tuple(transactions[:_MOST_ROWS]),
        max(0, len(transactions) - _MOST_ROWS),
        tuple(groups[:_MOST_ROWS]),
        max(0, len(groups) - _MOST_ROWS),
        tuple(waste[:_MOST_ROWS]),
        max(0, len(waste) - _MOST_ROWS),
        _shares(lake, scope),
    )


def _brokers(lake: Lake) -> tuple[int | None, list[DiskBroker]]:
    by_broker: dict[tuple[str | None, int | None], DiskBroker] = {}
    topics: defaultdict[tuple[str | None, int | None], Counter[str]] = defaultdict(Counter)
    sizes: Counter[str] = Counter()
    read_at: int | None = None
    for row in rows(lake, "log_health", _HEALTH):
        key = row["cluster_id"], row["broker"]
        broker = by_broker.setdefault(key, DiskBroker(*key))
        broker.partitions += 1
        for name in ("segments", "bytes", "records", "damaged_bytes", "bad_crc", "quarantined", "differing_batches",
                     "missing_records"):  # fmt: skip
            setattr(broker, name, getattr(broker, name) + (row[name] or 0))
        topics[key][row["topic"]] += row["bytes"]
        sizes[row["topic"]] += row["bytes"]
        if row["topic"].startswith("__") and row["latest_at"] is not None:
            read_at = max(read_at or 0, row["latest_at"])
    largest = [topic for topic, _ in sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[:_MOST_TOPICS]]
    for key, broker in by_broker.items():
        broker.topics = {topic: topics[key][topic] for topic in largest}
    return read_at, sorted(by_broker.values(), key=lambda row: (row.cluster_id or "", row.broker is None, row.broker))


def _changes(lake: Lake, scope: Scope) -> PartitionChanges | None:
    """Topics that were created or deleted don't count."""
    times: list[tuple[int, str]] = []
    changed: dict[tuple[str | None, str | None, int], ChangedPartition] = {}
    for row in rows(lake, "partition_events", _EVENTS, scope.at("occurred_at")):
        at, kind = row["occurred_at"], row["kind"]
        if kind not in CHANGES or at is None:
            continue
        times.append((at, kind))
        key = row["cluster_id"], row["topic"], row["partition"]
        partition = changed.setdefault(key, ChangedPartition(*key))
        partition.leader_changes += kind == "leader"
        partition.isr_changes += kind == "isr"
        if partition.last_at is None or at >= partition.last_at:
            partition.last_at, partition.leader = at, row["to_leader"]
            partition.isr, partition.replicas = row["to_isr"], row["to_replicas"]
    if not times:
        return None
    buckets = buckets_of(min(times)[0], max(max(times)[0], min(times)[0] + _SHORTEST_US), _MOST_BUCKETS)
    steps = {kind: [0] * buckets.count for kind in CHANGES}
    for at, kind in times:
        steps[kind][min(buckets.count - 1, (at - buckets.first_at) // buckets.step_us)] += 1
    worst = sorted(changed.values(), key=_trouble)
    used = {kind: numbers for kind, numbers in steps.items() if any(numbers)}
    return PartitionChanges(buckets, len(times), used, tuple(worst[:_MOST_ROWS]), max(0, len(worst) - _MOST_ROWS))


def _trouble(row: ChangedPartition) -> tuple[bool, int, int, str, int]:
    return row.leader is not None, -row.leader_changes, -row.isr_changes, row.topic or "", row.partition


def _waste(lake: Lake) -> list[WastedPartition]:
    by_partition: dict[tuple[str | None, int | None, str, int], WastedPartition] = {}
    for row in rows(lake, "compaction_waste", _WASTE):
        key = row["cluster_id"], row["broker"], row["topic"], row["partition"]
        partition = by_partition.setdefault(key, WastedPartition(*key))
        for name in ("records", "bytes", "superseded", "superseded_bytes", "expired_tombstones"):
            setattr(partition, name, getattr(partition, name) + (row[name] or 0))
    return sorted(
        by_partition.values(), key=lambda row: (-row.superseded_bytes, row.topic, row.partition, row.broker or -1)
    )


def _shares(lake: Lake, scope: Scope) -> ShareComparison | None:
    counts: Counter[str] = Counter()
    groups: set[str] = set()
    differences: list[DifferentRange] = []
    for row in rows(lake, "share_agreement", _AGREEMENT):
        if not scope.takes(row["group_id"]):
            continue
        groups.add(row["group_id"])
        counts[row["verdict"]] += row["last_offset"] - row["first_offset"] + 1
        if row["verdict"] != "agree":
            topic_id, topic = row.pop("topic_id"), row.pop("topic")
            differences.append(DifferentRange(**row, topic=topic or topic_id))
    if not groups:
        return None
    differences.sort(key=lambda row: (row.group_id, row.topic or "", row.partition, row.first_offset, row.verdict))
    return ShareComparison(
        tuple(sorted(groups)[:_MOST_ROWS]), counts["agree"], counts["only_recorded"], counts["only_written"],
        tuple(differences[:_MOST_ROWS]), max(0, len(differences) - _MOST_ROWS),
    )  # fmt: skip
