"""Marts about log directories say what the broker said of itself at the end of the run; and of three nodes' disks, what
their snapshots say."""

from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafkascope.errors import InputError, UsageError
from kafkascope.health.disks.image import MetadataImage
from kafkascope.health.disks.metadata_records import word
from kafkascope.lake.home import Lake, open_lake
from kafkascope.lake.read.metadata_at import ClusterMetadata, metadata_at
from kafkascope.lake.read.visible_rows import dataset
from tests.pipeline.log_lakes import answers, disks_lake, truths_lake
from tests.pipeline.log_secrets import CLUSTER, OPEN, TOPIC
from tests.pipeline.mart_rows import mart

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHARE_GROUP = "processors"
_TOPIC_CONFIG, _GROUP_CONFIG = 1, 8


@pytest.fixture(scope="module")
def disks(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> str:
    return disks_lake(spark, tmp_path_factory)[0]


@pytest.fixture(scope="module")
def run(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    return truths_lake(spark, tmp_path_factory)


@pytest.fixture(scope="module")
def lake(run: tuple[str, Path]) -> str:
    return run[0]


@pytest.fixture(scope="module")
def answered(run: tuple[str, Path]) -> dict[str, Any]:
    return answers(run[1])


def test_metadata_is_that_of_the_broker(lake: str, answered: dict[str, Any]) -> None:
    cluster_id = answered["Metadata"]["clusterId"]
    known = metadata_at(open_lake(lake), cluster_id=cluster_id)
    topics = {topic["name"]: topic for topic in answered["Metadata"]["topics"]}
    assert known.topics == {name: topic["topicId"] for name, topic in topics.items()}
    wanted = {
        (name, row["partitionIndex"]): (row["leaderId"], row["leaderEpoch"], row["replicaNodes"], row["isrNodes"])
        for name, topic in topics.items()
        for row in topic["partitions"]
    }
    # The broker was asked before it stopped.
    before = metadata_at(open_lake(lake), offset=_last_offset_with_a_leader(lake), cluster_id=cluster_id)
    held = {key: (p.leader, p.leader_epoch, [*p.replicas], [*p.isr]) for key, p in before.partitions.items()}
    assert held == wanted and len(wanted) > 10


def _last_offset_with_a_leader(lake: str) -> int:
    lost = [row["offset"] for row in mart(lake, "partition_events", kind="leader") if row["to_leader"] is None]
    return min(lost, default=1 << 62) - 1


def test_settings_features_and_acls_are_those_of_the_broker(lake: str, answered: dict[str, Any]) -> None:
    known = metadata_at(open_lake(lake), cluster_id=answered["Metadata"]["clusterId"])
    kinds = {2: ("topic", _TOPIC_CONFIG), 32: ("group", _GROUP_CONFIG)}
    wanted = {
        (kinds[result["resourceType"]][0], result["resourceName"], config["name"]): config["value"]
        for result in answered["DescribeConfigs"]["results"]
        for config in result["configs"]
        if config["configSource"] == kinds[result["resourceType"]][1]
    }
    assert {key: value for key, value in known.configs.items() if key[0] in ("topic", "group")} == wanted
    assert ("topic", "ledger", "max.message.bytes") in wanted and ("topic", "ledger", "retention.bytes") not in wanted
    features = answered["ApiVersions"]["finalizedFeatures"]
    assert known.features == {row["name"]: row["maxVersionLevel"] for row in features} and len(features) > 4
    acls: defaultdict[str, int] = defaultdict(int)
    for resource in answered["DescribeAcls"]["resources"]:
        acls[word({2: "topic"}, resource["resourceType"]) or ""] += len(resource["acls"])
    assert known.acls == acls == {"topic": 2}


def test_offsets_are_those_of_the_broker(lake: str, answered: dict[str, Any]) -> None:
    wanted = {
        (group["groupId"], topic["name"], partition["partitionIndex"]): partition["committedOffset"]
        for answer in answered["OffsetFetch"]
        for group in answer["groups"]
        for topic in group["topics"]
        for partition in topic["partitions"]
    }
    latest = mart(lake, "group_offsets", latest=True)
    held = {(row["group_id"], row["topic"], row["partition"]): row for row in latest}
    assert {key: row["committed_offset"] for key, row in held.items() if row["committed_offset"] is not None} == wanted
    assert len(wanted) == 5 and held["billing", "payments", 1]["committed_offset"] is None
    assert held["billing", "orders", 0]["rewinds"] == 1
    ends = {(row["topic"], row["partition"]): row["end_offset"] for row in mart(lake, "log_health", broker=1)}
    for (_, topic, partition), row in held.items():
        if row["committed_offset"] is not None:
            lag = ends[topic, partition] - row["committed_offset"]
            assert row["lag_now"] == (lag if lag >= 0 else None)


def test_share_state_is_that_of_the_broker(lake: str, answered: dict[str, Any]) -> None:
    (group,) = answered["DescribeShareGroupOffsets"]["groups"]
    wanted = {
        (topic["topicName"], row["partitionIndex"]): row["startOffset"]
        for topic in group["topics"]
        for row in topic["partitions"]
    }
    last: dict[tuple[str, int], dict[str, Any]] = {}
    for row in sorted(mart(lake, "share_state", group_id=SHARE_GROUP), key=lambda row: row["offset"]):
        last[row["topic"], row["partition"]] = row
    assert {key: row["start_offset"] for key, row in last.items()} == wanted and len(wanted) == 3
    for row in last.values():
        assert row["end_offset"] - row["start_offset"] == row["available"] + row["acknowledged"] + row["archived"]


def test_open_transactions_are_those_of_the_broker(lake: str, answered: dict[str, Any]) -> None:
    (partition,) = answered["DescribeProducers"]["topics"][0]["partitions"]
    wanted = {
        (producer["producerId"], producer["currentTxnStartOffset"])
        for producer in partition["activeProducers"]
        if producer["currentTxnStartOffset"] >= 0
    }
    rows = mart(lake, "open_transactions", cluster_id=answered["Metadata"]["clusterId"])
    assert {(row["producer_id"], row["first_offset"]) for row in rows} == wanted and len(wanted) == 2
    states = {row["producerId"]: row["transactionState"] for row in answered["ListTransactions"]["transactionStates"]}
    assert {row["producer_id"]: row["coordinator_state"] for row in rows}.items() <= states.items()
    by_id = {row["transactional_id"]: row for row in rows}
    assert by_id["open-1"]["hanging"] is False and by_id["open-1"]["holds_stable_offset"]
    assert by_id["lost-1"]["hanging"] is True and not by_id["lost-1"]["holds_stable_offset"]
    assert by_id["open-1"]["timeout_ms"] == 900_000 and by_id["open-1"]["open_ms"] >= 0


def test_a_transaction_from_before_the_log_is_known_from_the_snapshot(lake: str) -> None:
    """The one that ended after the snapshot isn't open."""
    columns = ("producer_id", "producer_epoch", "first_offset", "last_offset", "records", "started_at", "hanging",
               "holds_stable_offset")  # fmt: skip
    rows = mart(lake, "open_transactions", cluster_id=CLUSTER)
    assert [tuple(row[column] for column in columns) for row in rows] == [(OPEN, 1, 5, 8, 0, None, None, True)]


def test_segments_that_a_broker_has_removed_do_not_count(lake: str, run: tuple[str, Path]) -> None:
    segments = sorted((run[1] / "planted" / f"{TOPIC}-0").glob("*.log"))
    (row,) = mart(lake, "log_health", cluster_id=CLUSTER, topic=TOPIC)
    assert (row["segments"], row["bytes"]) == (2, sum(path.stat().st_size for path in segments))
    assert (row["batches"], row["first_offset"], row["end_offset"]) == (21, 10, 31)
    # Its rows stay.
    batches = dataset(open_lake(lake), "log_batches").to_table(columns=["topic", "base_offset"]).to_pylist()
    assert sorted(row["base_offset"] for row in batches if row["topic"] == TOPIC) == [*range(31)]


def test_what_the_brokers_wrote_agrees_with_the_recorded_deliveries(lake: str) -> None:
    rows = mart(lake, "share_agreement")
    assert [row for row in rows if row["verdict"] != "agree"] == []
    deliveries = [
        row for row in mart(lake, "share_deliveries") if row["outcome"] not in ("open", "moved")
    ]  # fmt: skip
    ended = {
        (row["topic_id"], row["partition"], offset, row["delivery_count"])
        for row in deliveries
        for offset in range(row["first_offset"], row["last_offset"] + 1)
    }
    agreed = {
        (row["topic_id"], row["partition"], offset, row["delivery_count"])
        for row in rows
        for offset in range(row["first_offset"], row["last_offset"] + 1)
    }
    assert agreed == ended and len(agreed) > 60
    assert {row["state"] for row in rows} == {"available", "acknowledged", "archived"}


def test_every_snapshot_is_the_state_at_its_offset(disks: str) -> None:
    """Twenty snapshots of three nodes, against the log alone."""
    home = open_lake(disks)
    by_snapshot = _snapshot_images(home)
    assert len(by_snapshot) >= 10
    for snapshot, image in by_snapshot.items():
        assert _of(metadata_at(home, offset=snapshot - 1)) == _of_image(image), snapshot


def _snapshot_images(home: Lake) -> dict[int, MetadataImage]:
    """By the largest offset that they go up to, of node 1."""
    types = ("feature_level_record", "register_broker_record", "topic_record", "partition_record", "config_record",
             "access_control_entry_record")  # fmt: skip
    images: defaultdict[int, MetadataImage] = defaultdict(MetadataImage)
    for type_ in types:
        for row in dataset(home, type_).to_table(columns=["broker", "snapshot_offset", "value"]).to_pylist():
            if row["broker"] == 1 and row["snapshot_offset"]:
                list(images[row["snapshot_offset"]].apply(type_, row["value"]))
    return dict(images)


def _of(metadata: ClusterMetadata) -> list[Any]:
    partitions = {key: (p.leader, p.leader_epoch, p.replicas, p.isr) for key, p in metadata.partitions.items()}
    # This level is in a control record.
    features = {name: level for name, level in metadata.features.items() if name != "kraft.version"}
    return [metadata.topics, partitions, metadata.configs, features, metadata.acls, metadata.brokers]


def _of_image(image: MetadataImage) -> list[Any]:
    by_kind: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for key, facts in image.facts.items():
        by_kind[key[0]].append(facts)
    return [
        {facts["topic"]: facts["topic_id"] for facts in by_kind["topic"]},
        {
            (facts["topic"], facts["partition"]): (
                facts["leader"],
                facts["leader_epoch"],
                tuple(facts["replicas"]),
                tuple(facts["isr"]),
            )
            for facts in by_kind["partition"]
        },
        {(facts["resource_type"], facts["resource"], facts["name"]): facts["value"] for facts in by_kind["config"]},
        {facts["name"]: int(facts["value"]) for facts in by_kind["feature"]},
        {facts["resource_type"]: int(facts["value"]) for facts in by_kind["acls"]},
        {int(facts["name"]): facts["value"] for facts in by_kind["broker"]},
    ]


def test_the_state_at_a_time_is_that_of_the_last_record_before_it(disks: str, lake: str) -> None:
    home = open_lake(disks)
    events = mart(disks, "partition_events", kind="leader")
    for event in (events[0], events[-1]):
        at = datetime.fromtimestamp(event["occurred_at"] / 1e6, UTC)
        assert metadata_at(home, at=at).partitions[event["topic"], event["partition"]].leader == event["to_leader"]
        before = metadata_at(home, offset=event["offset"] - 1)
        assert before.partitions[event["topic"], event["partition"]].leader == event["from_leader"]
    with pytest.raises(InputError, match="no metadata is known at 1999"):
        metadata_at(home, at=datetime(1999, 1, 1, tzinfo=UTC))
    with pytest.raises(UsageError, match="several clusters, name one"):
        metadata_at(open_lake(lake))
    with pytest.raises(UsageError, match="a time or an offset"):
        metadata_at(home, at=datetime(1999, 1, 1, tzinfo=UTC), offset=3)


def test_replicas_do_not_double_rows(disks: str) -> None:
    """Three nodes have the same logs; the killed one has less."""
    for name, columns in {
        "partition_events": ("topic_id", "partition", "offset"),
        "group_offsets": ("group_id", "topic", "partition", "minute_at"),
        "share_state": ("group_id", "topic_id", "partition", "offset"),
        "open_transactions": ("topic", "partition", "producer_id"),
        "dead_groups": ("group_id",),
        "log_health": ("broker", "topic", "partition"),
        "compaction_waste": ("broker", "topic", "partition", "record_type"),
    }.items():
        keys = [tuple(row[column] for column in columns) for row in mart(disks, name)]
        assert keys and len(set(keys)) == len(keys), name
    short = {row["broker"]: row["missing_records"] for row in mart(disks, "log_health", topic="__cluster_metadata")}
    assert short[2] > 50 and min(short.values()) == 0


def test_records_of_compacted_topics_are_counted_by_key(disks: str) -> None:
    rows = mart(disks, "compaction_waste", broker=1, topic="__transaction_state")
    assert sum(row["keys"] for row in rows) == 4
    assert all(row["superseded"] == row["records"] - row["keys"] for row in rows)
    assert all(0 < row["superseded_bytes"] < row["bytes"] for row in rows)
    groups = {row["group_id"]: row for row in mart(disks, "dead_groups")}
    kinds = {"readers-classic": "classic", "readers-consumer": "consumer", "processors": "share", "counters": "streams"}
    assert {group: groups[group]["group_type"] for group in kinds} == kinds
    assert all(0 < row["silent_ms"] < 120_000 and row["topics_gone"] == [] for row in groups.values())
