"""What the report says of log directories: brokers, changes, transactions, groups, and whether two truths agree."""

from pathlib import Path
from typing import Any

from kafkascope.report.json_form import report_json
from kafkascope.report.page.page import page
from kafkascope.report.summaries.disks import disks_in
from kafkascope.report.summaries.scope import Scope
from tests.report.build import ALL, HOSTILE, MINUTE, NOON, SECOND, Row, lake_of, report_of

NODE: Row = {"cluster_id": "c", "topic": "orders", "topic_id": "t", "partition": 0}


def health(broker: int, **values: Any) -> Row:
    counts = dict.fromkeys(
        "missing_bytes differing_batches damaged_bytes bad_crc quarantined missing_records".split(), 0
    )
    sizes = {"replicas": 3, "segments": 2, "bytes": 1000, "batches": 5, "records": 50, "latest_at": NOON}
    return {**NODE, "broker": broker, **counts, **sizes, **values}


def event(seconds: int, kind: str = "leader", **values: Any) -> Row:
    usual = {"occurred_at": NOON + seconds * SECOND, "offset": seconds, "kind": kind, "leader_epoch": 1,
             "from_leader": 1, "to_leader": 2, "from_isr": [1, 2], "to_isr": [2], "from_replicas": [1, 2],
             "to_replicas": [1, 2]}  # fmt: skip
    return {**NODE, **usual, **values}


def agreement(first: int, last: int, verdict: str = "agree", **values: Any) -> Row:
    usual = {"group_id": "g", "first_offset": first, "last_offset": last, "delivery_count": 1, "state": "acknowledged"}
    return {**NODE, **usual, "verdict": verdict, **values}


def group(name: str, silent_ms: int) -> Row:
    return {"cluster_id": "c", "group_id": name, "group_type": "consumer", "members": 0, "partitions": 1,
            "topics": ["orders"], "topics_gone": [], "last_commit_at": NOON, "read_at": NOON, "silent_ms": silent_ms,
            "lag_now": 7}  # fmt: skip


def test_disks_are_summed_by_broker(tmp_path: Path) -> None:
    rows = [health(1), health(1, topic="__consumer_offsets", bytes=40, latest_at=NOON + MINUTE), health(2, bad_crc=3)]
    disks = disks_in(lake_of(tmp_path, {"log_health": rows}), ALL)
    assert disks.read_at == NOON + MINUTE
    assert [(broker.broker, broker.partitions, broker.bytes, broker.bad_crc) for broker in disks.brokers] == [
        (1, 2, 1040, 0),
        (2, 1, 1000, 3),
    ]
    assert disks.brokers[0].topics == {"orders": 1000, "__consumer_offsets": 40}


def test_changes_are_counted_by_step_and_partition(tmp_path: Path) -> None:
    rows = [event(0), event(90, "isr"), event(95, to_leader=None, to_isr=[]), event(3, "created"), event(4, "deleted")]
    changes = disks_in(lake_of(tmp_path, {"partition_events": rows}), ALL).changes
    assert changes is not None and changes.total == 3
    assert {kind: sum(numbers) for kind, numbers in changes.steps.items()} == {"leader": 2, "isr": 1}
    (partition,) = changes.partitions
    assert (partition.leader_changes, partition.isr_changes, partition.leader, partition.isr) == (2, 1, None, [])
    until = Scope(until=NOON + MINUTE)
    shorter = disks_in(lake_of(tmp_path / "other", {"partition_events": rows}), until).changes
    assert shorter is not None and shorter.total == 1


def test_the_report_says_whether_two_truths_agree(tmp_path: Path) -> None:
    agreed = report_of(
        tmp_path / "one", log_health=[health(1)], share_agreement=[agreement(0, 99), agreement(100, 104)]
    )
    sentence = "state agrees with the recorded deliveries: all 105 ends of 1 share group."
    assert sentence in page(agreed)
    rows = [
        agreement(0, 99),
        agreement(100, 104, "only_recorded"),
        agreement(102, 102, "only_written", state="archived"),
    ]
    differing = report_of(tmp_path / "two", log_health=[health(1)], share_agreement=rows)
    text = page(differing)
    assert "differ in 6 of 106 ends of 1 share group" in text and "recorded, not on disk" in text
    shares = report_json(differing)["disks"]["shares"]
    assert (shares["agree"], shares["only_recorded"], shares["only_written"]) == (100, 5, 1)
    assert [(row["first_offset"], row["last_offset"]) for row in shares["differences"]] == [(100, 104), (102, 102)]


def test_groups_are_those_of_the_scope_and_names_are_escaped(tmp_path: Path) -> None:
    rows = [group("quick", 5), group(HOSTILE, 700_000)]
    lake = lake_of(tmp_path, {"dead_groups": rows})
    assert [row.group_id for row in disks_in(lake, ALL).groups] == [HOSTILE, "quick"]
    assert [row.group_id for row in disks_in(lake, Scope(("qu*",))).groups] == ["quick"]
    hostile = report_of(
        tmp_path / "hostile",
        log_health=[health(1, topic=HOSTILE)],
        dead_groups=rows,
        partition_events=[event(0, topic=HOSTILE)],
        share_agreement=[agreement(0, 1, "only_written", group_id=HOSTILE, topic=HOSTILE)],
    )
    assert "<script>alert" not in page(hostile)


def test_a_lake_without_disks_says_so(tmp_path: Path) -> None:
    text = page(report_of(tmp_path, findings=[]))
    assert "No log directory of a broker was read." in text
