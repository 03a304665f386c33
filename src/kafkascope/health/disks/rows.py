"""Defines the rows of the marts about log directories. Times are microseconds since 1970, UTC."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MetadataRow:
    """A fact of the metadata log and how long it held: from `from_offset` on, before `to_offset`."""

    cluster_id: str | None
    kind: str
    topic: str | None = None
    topic_id: str | None = None
    partition: int | None = None
    leader: int | None = None
    leader_epoch: int | None = None
    replicas: list[int] | None = None
    isr: list[int] | None = None
    resource_type: str | None = None
    resource: str | None = None
    name: str | None = None
    value: str | None = None
    from_offset: int | None = None
    from_at: int | None = None
    to_offset: int | None = None
    to_at: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionEvent:
    """A change of a partition's leader, ISR or replicas. No leader is null."""

    cluster_id: str | None
    occurred_at: int | None
    offset: int
    kind: str
    topic: str | None
    topic_id: str
    partition: int
    from_leader: int | None
    to_leader: int | None
    leader_epoch: int
    from_isr: list[int]
    to_isr: list[int]
    from_replicas: list[int]
    to_replicas: list[int]


@dataclass(frozen=True, slots=True)
class ShareState:
    """A share partition after one write to `__share_group_state`. Counts are records from `start_offset` on."""

    cluster_id: str | None
    group_id: str
    topic: str | None
    topic_id: str
    partition: int
    written_at: int | None
    offset: int
    kind: str
    snapshot_epoch: int
    state_epoch: int | None
    leader_epoch: int | None
    start_offset: int | None
    end_offset: int | None
    available: int
    acknowledged: int
    archived: int
    max_delivery_count: int
    delivery_complete_count: int | None


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """Commits of a group for a partition in one minute."""

    cluster_id: str | None
    group_id: str
    topic: str
    partition: int
    minute_at: int
    last_at: int
    commits: int
    rewinds: int
    committed_offset: int | None
    log_end_offset: int | None
    lag: int | None
    latest: bool
    lag_now: int | None


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction without a marker in one partition."""

    cluster_id: str | None
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    transactional_id: str | None
    coordinator_state: str | None
    hanging: bool | None
    timeout_ms: int | None
    started_at: int | None
    read_at: int | None
    open_ms: int | None
    first_offset: int
    last_offset: int
    records: int
    log_end_offset: int
    holds_stable_offset: bool


@dataclass(frozen=True, slots=True)
class DeadGroup:
    """A group with committed offsets, and for how long it hasn't committed."""

    cluster_id: str | None
    group_id: str
    group_type: str | None
    members: int | None
    partitions: int
    topics: list[str]
    topics_gone: list[str]
    last_commit_at: int
    read_at: int
    silent_ms: int
    lag_now: int | None


@dataclass(frozen=True, slots=True)
class CompactionWaste:
    """Records of one type in a partition of an internal topic, on one broker."""

    cluster_id: str | None
    broker: int | None
    topic: str
    partition: int
    record_type: str
    records: int
    bytes: int
    keys: int
    superseded: int
    superseded_bytes: int
    tombstones: int
    expired_tombstones: int
    expired_bytes: int
    clean_until: int | None


@dataclass(frozen=True, slots=True)
class LogHealth:
    """A replica of a partition on one broker's disk."""

    cluster_id: str | None
    broker: int | None
    topic: str
    topic_id: str | None
    partition: int
    replicas: int
    segments: int
    bytes: int
    batches: int
    records: int
    first_offset: int | None
    end_offset: int | None
    earliest_at: int | None
    latest_at: int | None
    log_start_offset: int | None
    high_watermark: int | None
    clean_until: int | None
    dirty_bytes: int | None
    damaged_bytes: int
    bad_crc: int
    quarantined: int
    missing_records: int
    missing_bytes: int
    differing_batches: int
    differs_from: int | None


@dataclass(frozen=True, slots=True)
class ShareAgreement:
    """A range of offsets in which the brokers' share state and the recorded deliveries agree or differ."""

    cluster_id: str | None
    group_id: str
    topic: str | None
    topic_id: str
    partition: int
    first_offset: int
    last_offset: int
    delivery_count: int | None
    state: str
    verdict: str
