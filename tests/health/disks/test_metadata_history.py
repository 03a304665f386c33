"""What held from when to when, from records of the metadata log and of snapshots."""

from typing import Any

from kafkascope.health.disks.metadata_history import METADATA_AT, PARTITION_EVENTS, history_of
from kafkascope.health.disks.metadata_records import MetadataRecord
from kafkascope.health.disks.rows import MetadataRow, PartitionEvent
from kafkascope.health.disks.runs import Run, runs_of

WHOLE = [Run(0, 1000, None)]


def record(offset: int, type_: str, snapshot: int | None = None, **value: Any) -> MetadataRecord:
    at = offset if snapshot is None else snapshot
    return MetadataRecord(offset, at * 1000, type_, value, snapshot, None if snapshot is None else f"{snapshot}.file")


def topic(offset: int, name: str, snapshot: int | None = None) -> MetadataRecord:
    return record(offset, "topic_record", snapshot, name=name, topic_id=f"id-{name}")


def partition(offset: int, name: str, leader: int, *isr: int, snapshot: int | None = None) -> MetadataRecord:
    values = {"topic_id": f"id-{name}", "partition_id": 0, "leader": leader, "leader_epoch": 0}
    return record(offset, "partition_record", snapshot, **values, replicas=[1, 2, 3], isr=list(isr))


def change(offset: int, name: str, **values: Any) -> MetadataRecord:
    return record(offset, "partition_change_record", topic_id=f"id-{name}", partition_id=0, **values)


def walked(records: list[MetadataRecord], runs: list[Run] = WHOLE) -> tuple[list[MetadataRow], list[PartitionEvent]]:
    rows = list(history_of("c", records, runs))
    return [row for name, row in rows if name == METADATA_AT], [row for name, row in rows if name == PARTITION_EVENTS]


def leaders(rows: list[MetadataRow]) -> list[tuple[int | None, int | None, int | None]]:
    held = [(row.from_offset, row.to_offset, row.leader) for row in rows if row.kind == "partition"]
    return sorted(held, key=lambda row: row[0] or 0)


def test_a_leader_holds_until_the_next_one() -> None:
    rows, events = walked(
        [
            topic(0, "a"),
            partition(1, "a", 1, 1, 2, 3),
            change(5, "a", isr=[1, 2], leader=-2),
            change(7, "a", leader=-1, isr=[2]),
            change(9, "a", leader=2),
        ]
    )
    assert leaders(rows) == [(1, 5, 1), (5, 7, 1), (7, 9, None), (9, None, 2)]
    assert [(e.kind, e.from_leader, e.to_leader, e.leader_epoch, e.to_isr) for e in events] == [
        ("created", None, 1, 0, [1, 2, 3]),
        ("isr", 1, 1, 0, [1, 2]),
        ("leader", 1, None, 1, [2]),
        ("leader", None, 2, 2, [2]),
    ]


def test_a_deleted_topic_takes_its_partitions_and_settings_along() -> None:
    setting = record(2, "config_record", resource_type=2, resource_name="a", name="retention.ms", value="1")
    rows, events = walked(
        [topic(0, "a"), partition(1, "a", 1, 1), setting, record(8, "remove_topic_record", topic_id="id-a")]
    )
    assert {(row.kind, row.to_offset) for row in rows} == {("topic", 8), ("partition", 8), ("config", 8)}
    assert events[-1].kind == "deleted"


def test_what_a_metadata_transaction_aborts_never_held() -> None:
    rows, _ = walked(
        [
            record(0, "begin_transaction_record", name="x"),
            topic(1, "aborted"),
            record(2, "abort_transaction_record"),
            record(3, "begin_transaction_record", name="y"),
            topic(4, "kept"),
            record(5, "end_transaction_record"),
        ]
    )
    assert [(row.topic, row.from_offset) for row in rows] == [("kept", 5)]


def test_a_snapshot_is_the_base_where_the_start_of_the_log_is_gone() -> None:
    """Changes before it have no base, and the other snapshots would say everything twice."""
    records = [
        change(40, "a", leader=3),
        topic(1, "a", snapshot=50),
        partition(2, "a", 2, 2, snapshot=50),
        change(60, "a", leader=1),
        topic(1, "a", snapshot=70),
        partition(2, "a", 1, 1, snapshot=70),
    ]
    rows, events = walked(records, runs_of([(38, 100)], [(50, "50.file"), (70, "70.file")]))
    assert leaders(rows) == [(50, 60, 2), (60, None, 1)]
    assert [(event.kind, event.offset) for event in events] == [("leader", 60)]


def test_nothing_is_known_in_a_hole_of_the_log() -> None:
    runs = runs_of([(0, 10), (50, 90), (8, 12)], [(60, "60.file")])
    assert runs == [Run(0, 12, None), Run(60, 90, "60.file")]
    records = [topic(0, "a"), partition(1, "a", 1, 1), topic(1, "a", snapshot=60), partition(2, "a", 3, 3, snapshot=60)]
    rows, _ = walked(records, runs)
    assert leaders(rows) == [(1, 12, 1), (60, None, 3)]


def test_acls_are_counted_and_features_turned_off() -> None:
    rows, _ = walked(
        [
            record(0, "access_control_entry_record", id="1", resource_type=2),
            record(1, "access_control_entry_record", id="2", resource_type=2),
            record(2, "remove_access_control_entry_record", id="1"),
            record(3, "feature_level_record", name="share.version", feature_level=1),
            record(4, "feature_level_record", name="share.version", feature_level=0),
        ]
    )
    held = [(row.kind, row.value, row.from_offset, row.to_offset) for row in rows]
    assert sorted(held, key=lambda row: row[2] or 0) == [
        ("acls", "1", 0, 1),
        ("acls", "2", 1, 2),
        ("acls", "1", 2, None),
        ("feature", "1", 3, 4),
    ]
