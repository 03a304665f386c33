"""Topics, brokers and groups of the recorded incidents are those that the recipes set up; ids, clusters and types are
right where only a part of them was recorded."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kafkascope.lake.tables import table_named
from kafkascope.pipeline.mart.base.events import NO_TOPIC
from kafkascope.pipeline.mart.base.sources import narrow_schema
from kafkascope.pipeline.mart.increments.plan import EVERY_ROW
from kafkascope.pipeline.mart.names import topics_and_groups
from kafkascope.pipeline.mart.names.brokers import broker_rows
from kafkascope.pipeline.mart.names.facts import LakeFacts, NamedBroker, RecordedCalls
from tests.capture.truth_events import topic_ids
from tests.captures import recording, truth
from tests.pipeline.mart_lakes import NAMES, PACKETS, incidents
from tests.pipeline.mart_rows import Plain, mart
from tests.pipeline.test_marts_events import bodies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECOND = timedelta(seconds=1)
AT = datetime(2026, 11, 15, 12, tzinfo=UTC)
FIRST, SECOND_ID = "3smlVbmfSga0qWpNvci6fQ", "Kc_XE1ppSAqJ1s2wTZS3oA"


@pytest.fixture(scope="module")
def lake(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> str:
    return incidents(spark, tmp_path_factory, PACKETS)


def cluster_of(lake: str, incident: str) -> str:
    """By the node's first port."""
    address = f"127.0.0.1:{recording(incident)['ports']['1']['PLAINTEXT']}"
    (row,) = mart(lake, "brokers", broker_address=address)
    return str(row["cluster_id"])


def test_topics_of_each_incident_are_those_that_were_set_up(lake: str) -> None:
    rows = mart(lake, "topics")
    for name in NAMES:
        by_topic = {row["topic"]: row for row in rows if row["cluster_id"] == cluster_of(lake, name)}
        assert topic_ids(name).items() <= {topic: row["topic_id"] for topic, row in by_topic.items()}.items()
        set_up = [event["topics"] for event in truth(name) if event["event"] == "set_up"]
        for topic, partitions, _ in (text.split(":") for text in set_up[0].split(",")) if set_up else ():
            assert (by_topic[topic]["partitions"], by_topic[topic]["internal"]) == (int(partitions), False)
    # Some are only named at the controller, whose cluster nothing but their ids shows.
    assert len({row["topic_id"] for row in rows}) == len(rows) == 24
    assert all(row["topic_id"] and row["cluster_id"] for row in rows)
    assert sorted(row["topic"] for row in rows if row["internal"]) == ["__consumer_offsets", "__transaction_state"]


def test_partitions_are_the_newest_number(lake: str) -> None:
    """Java clients created a topic with one and added another."""
    grown = {row["topic"]: row for row in mart(lake, "topics") if row["topic"].startswith("java-")}
    assert {topic: row["partitions"] for topic, row in grown.items()} == {"java-2.8": 2, "java-3.9": 2, "java-4.3": 2}
    row = grown["java-4.3"]
    # CreateTopics at the controller (11 ms before the client had its response), the last Metadata response.
    assert (row["first_at"], row["last_at"]) == (1794737361087827, 1794737361196084)


def test_brokers_are_the_listeners_that_were_recorded(lake: str) -> None:
    rows = {row["broker_address"]: row for row in mart(lake, "brokers")}
    for name in NAMES:
        for node, ports in recording(name)["ports"].items():
            for listener, port in ports.items():
                row = rows.pop(f"127.0.0.1:{port}", None)
                # TLS connections have no exchanges, and no response names their listener.
                assert (row is None) == (listener == "TLS")
                if row is None:
                    continue
                assert (row["host"], row["port"]) == ("127.0.0.1", port) and row["calls"] > 0
                assert row["node_id"] == (None if listener == "CONTROLLER" else int(node))
                # Raft requests have the cluster of a controller; a lone one gets none.
                known = listener != "CONTROLLER" or name == "quorum"
                assert row["cluster_id"] == (cluster_of(lake, name) if known else None)
    assert not rows


def test_calls_of_brokers_add_up_to_the_exchanges(lake: str) -> None:
    assert sum(row["calls"] for row in mart(lake, "brokers")) == 2445


def test_groups_are_those_of_the_programs(lake: str) -> None:
    rows = {row["group_id"]: row for row in mart(lake, "groups")}
    columns = ("group_type", "protocol_type", "state", "members", "calls")
    shown = {group_id: tuple(row[name] for name in columns) for group_id, row in rows.items()}
    # As `kafkascope read` lists their calls, and the last ListGroups, ShareGroupDescribe and StreamsGroupDescribe.
    assert shown["processors"] == ("share", None, "Empty", 5, 234)
    assert shown["counters"] == ("streams", None, "Stable", 3, 126)
    assert shown["readers-java-2.8"] == ("classic", "consumer", "Empty", 1, 13)
    assert shown["readers-java-4.3"] == ("consumer", "consumer", "Empty", 1, 11)
    assert shown["readers-librdkafka"] == ("classic", "consumer", None, 1, 11)
    assert len(shown) == 12
    for group_id, incident in (("processors", "share"), ("counters", "streams"), ("readers-java-2.8", "clients")):
        row = rows[group_id]
        assert row["coordinator"] == f"127.0.0.1:{recording(incident)['ports']['1']['PLAINTEXT']}"
        assert row["cluster_id"] == cluster_of(lake, incident)
    # The first FindCoordinator, the last description.
    assert (rows["processors"]["first_at"], rows["processors"]["last_at"]) == (1794744442111443, 1794744457150234)


def made(
    spark: "SparkSession", name: str, clusters: dict[str, str] | None = None, **tables: list[dict[str, Any]]
) -> list[Plain]:
    frames: dict[str, Any] = {}
    for table, rows in tables.items():
        if table == "exchanges":
            schema = narrow_schema(table_named(table).schema, set(topics_and_groups.TABLES[table].split()))
            frames[table] = spark.createDataFrame(pa.Table.from_pylist(rows, schema))
        else:
            message = "".join(word.capitalize() for word in table.split("_"))
            frames[table] = bodies(spark, message, *rows)
    absent = frozenset(table for table in topics_and_groups.TABLES if table not in frames)
    # The only one that is joined from the left.
    frames.setdefault("create_topics_request", bodies(spark, "CreateTopicsRequest"))
    rows_of_both = topics_and_groups.topic_and_group_rows(spark, frames, absent, clusters or {}, EVERY_ROW)
    assert rows_of_both is not None
    return sorted((row[name].asDict() for row in rows_of_both.collect() if row.mart == name), key=repr)


def metadata(topic: str, topic_id: str | None, partitions: int, seconds: int = 0, **more: Any) -> dict[str, Any]:
    places = [{"partition_index": index} for index in range(partitions)]
    of_topic = {"error_code": 0, "name": topic, "topic_id": topic_id, "is_internal": False, "partitions": places}
    of_topic |= more.pop("of_topic", {})
    return {"exchange_id": str(seconds), "cluster_id": "A", "response_at": AT + seconds * SECOND,
            "topics": [of_topic], **more}  # fmt: skip


def ids(rows: list[Plain]) -> list[tuple[Any, ...]]:
    return [(row["topic_id"], row["topic"], row["cluster_id"], row["partitions"]) for row in rows]


def test_a_topic_that_was_created_again_is_two(spark: "SparkSession") -> None:
    """What has no id could be about either."""
    seen = [metadata("orders", FIRST, 1), metadata("orders", SECOND_ID, 3, 10), metadata("orders", None, 9, 20)]
    assert ids(made(spark, "topics", metadata_response=seen)) == [
        (FIRST, "orders", "A", 1), (SECOND_ID, "orders", "A", 3)
    ]  # fmt: skip


def test_a_response_without_ids_is_about_the_topic_of_that_name(spark: "SparkSession") -> None:
    seen = [metadata("orders", NO_TOPIC, 2, 10), metadata("orders", FIRST, 1), metadata("old", None, 4)]
    seen.append(metadata("orders", None, 5, cluster_id="B"))
    rows = made(spark, "topics", metadata_response=seen)
    assert sorted(ids(rows), key=repr) == [
        (FIRST, "orders", "A", 2), (None, "old", "A", 4), (None, "orders", "B", 5)
    ]  # fmt: skip
    (orders,) = (row for row in rows if row["topic_id"] == FIRST)
    assert orders["last_at"] - orders["first_at"] == 10 * SECOND


def test_topics_that_do_not_exist_are_not_there(spark: "SparkSession") -> None:
    missing = metadata("nope", NO_TOPIC, 0, of_topic={"error_code": 3})
    answer = {"topics": [{"error_code": 0, "name": "maybe", "topic_id": FIRST, "num_partitions": 3}]}
    real = {"topics": [{"error_code": 0, "name": "real", "topic_id": SECOND_ID, "num_partitions": -1}]}
    rows = made(
        spark,
        "topics",
        {"b:9092": "A"},
        metadata_response=[missing],
        alter_share_group_offsets_response=[
            {"error_code": 0, "responses": [{"topic_name": "no", "partitions": [{"error_code": 3}]}]}
        ],
        create_topics_request=[
            {"exchange_id": "v", "validate_only": True},
            {"exchange_id": "c", "validate_only": False},
        ],
        create_topics_response=[{"exchange_id": "v", **answer}, {"exchange_id": "c", **real}],
    )
    assert ids(rows) == [(SECOND_ID, "real", "A", None)]


def test_an_address_is_of_the_cluster_whose_topics_it_names(spark: "SparkSession") -> None:
    def created(topic: str, topic_id: str) -> dict[str, Any]:
        return {"error_code": 0, "name": topic, "topic_id": topic_id, "num_partitions": 3}

    answer = {"exchange_id": "c", "broker_address": "controller:9093"}
    seen = [metadata("orders", FIRST, 1, 10)]
    both = [created("orders", FIRST), created("__consumer_offsets", SECOND_ID)]
    rows = made(spark, "topics", create_topics_response=[{**answer, "topics": both}], metadata_response=seen)
    assert {row["cluster_id"] for row in rows} == {"A"} and len(rows) == 2
    rows = made(spark, "topics", create_topics_response=[{**answer, "topics": both[1:]}], metadata_response=seen)
    assert {(row["topic"], row["cluster_id"]) for row in rows} == {("orders", "A"), ("__consumer_offsets", None)}


def test_a_page_of_a_description_is_not_the_whole_topic(spark: "SparkSession") -> None:
    def page(first: int, last: int, cursor: dict[str, Any] | None, seconds: int) -> dict[str, Any]:
        row = metadata("orders", FIRST, 0, seconds)
        row["topics"][0]["partitions"] = [{"partition_index": index} for index in range(first, last)]
        row.pop("cluster_id")
        return {**row, "next_cursor": cursor}

    pages = [page(0, 3, {"topic_name": "orders", "partition_index": 3}, 0), page(3, 5, None, 1)]
    pages.append(page(0, 2, {"topic_name": "orders", "partition_index": 2}, 2))
    rows = made(spark, "topics", {"b:9092": "A"}, describe_topic_partitions_response=pages)
    assert ids(rows) == [(FIRST, "orders", "A", 5)]


def call(api: str, group_id: str = "g", seconds: int = 0, **more: Any) -> dict[str, Any]:
    return {"api": api, "group_id": group_id, "request_at": AT + seconds * SECOND, "broker_address": "b:9092",
            "error_code": 0, "status": "answered", **more}  # fmt: skip


def test_a_group_that_moves_to_the_newer_protocol_is_of_it(spark: "SparkSession") -> None:
    calls = [call("JoinGroup", member_id="m"), call("ConsumerGroupHeartbeat", seconds=1, member_id="n")]
    calls += [call("Heartbeat", seconds=2, member_id="m"), call("OffsetFetch", "asked", seconds=3)]
    calls.append(call("ConsumerGroupHeartbeat", "asked", error_code=35, member_id="n"))
    rows = made(spark, "groups", exchanges=calls)
    assert [(row["group_id"], row["group_type"], row["members"], row["calls"]) for row in rows] == [
        ("asked", None, 1, 2), ("g", "consumer", 2, 3)
    ]  # fmt: skip


def test_the_coordinator_is_who_responded_as_such(spark: "SparkSession") -> None:
    calls = [call("JoinGroup"), call("Heartbeat", seconds=1, broker_address="b:9093", error_code=16)]
    calls.append(call("ShareFetch", seconds=2, broker_address="b:9094"))
    (row,) = made(spark, "groups", exchanges=calls)
    assert row["coordinator"] == "b:9092"
    calls.append(call("Heartbeat", seconds=3, broker_address="b:9093"))
    (row,) = made(spark, "groups", exchanges=calls)
    assert row["coordinator"] == "b:9093"


def test_groups_of_one_name_in_two_clusters_are_two(spark: "SparkSession") -> None:
    calls = [call("JoinGroup", broker_address=address) for address in ("a:1", "a:2", "b:1", "c:1")]

    def calls_by_cluster(clusters: dict[str, str]) -> list[tuple[str | None, int]]:
        return [(row["cluster_id"], row["calls"]) for row in made(spark, "groups", clusters, exchanges=calls)]

    assert calls_by_cluster({"a:1": "A", "a:2": "A"}) == [("A", 4)]
    assert sorted(calls_by_cluster({"a:1": "A", "a:2": "A", "b:1": "B"}), key=repr) == [("A", 2), ("B", 1), (None, 1)]


def test_a_group_that_was_only_listed_is_there_as_listed(spark: "SparkSession") -> None:
    def listed(seconds: int, *groups: dict[str, Any]) -> dict[str, Any]:
        return {"exchange_id": str(seconds), "response_at": AT + seconds * SECOND, "groups": groups, "error_code": 0}

    def group(state: str | None, type_: str | None) -> dict[str, Any]:
        return {"group_id": "g", "group_state": state, "group_type": type_, "protocol_type": "connect"}

    described = {"error_code": 0, "group_id": "g", "group_state": "Dead", "protocol_type": "", "members": []}
    (row,) = made(
        spark,
        "groups",
        list_groups_response=[listed(0, group("Stable", "Classic")), listed(1, group(None, None))],
        describe_groups_response=[listed(2, described)],
    )
    columns = ("group_id", "group_type", "protocol_type", "state", "coordinator", "members", "calls")
    assert tuple(row[name] for name in columns) == ("g", "classic", "connect", "Stable", "b:9092", 0, 0)


def test_an_address_is_of_the_one_cluster_that_names_it() -> None:
    named = [
        NamedBroker("a:9092", "A", 2, "10.0.0.2", 9092, "east", 5, 9),
        NamedBroker("b:9092", "B", 3, "10.0.0.3", 9092, None, 1, 2),
    ]
    named += [
        NamedBroker("a:9092", None, 2, "10.0.0.2", 9092, None, 11, 12),
        NamedBroker("b:9092", "A", 3, "10.0.0.3", 9092, None, 1, 2),
    ]
    called = {
        "10.0.0.2:9092": RecordedCalls(7, 3, 8),
        "10.0.0.3:9092": RecordedCalls(4, 3, 4),
        "a:9092": RecordedCalls(1),
    }
    rows = broker_rows(LakeFacts(clusters={"a:9092": "A"}, named_brokers=named, calls_by_address=called))
    columns = ("broker_address", "cluster_id", "node_id", "rack", "calls", "first_at", "last_at")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        ("10.0.0.2:9092", "A", 2, "east", 7, 3, 12),
        ("10.0.0.3:9092", None, None, None, 4, 3, 4),
        ("10.0.0.3:9092", "A", 3, None, 0, 1, 2),
        ("10.0.0.3:9092", "B", 3, None, 0, 1, 2),
        ("a:9092", "A", None, None, 1, None, None),
    ]


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("[2001:db8::1]:9092", "2001:db8::1", 9092),
        ("broker:9092", "broker", 9092),
        ("what a log had", "", None),
        ("b:99999999999999999999", "b", None),
    ],
)
def test_an_address_that_nobody_names_has_its_own_host_and_port(address: str, host: str, port: int | None) -> None:
    (row,) = broker_rows(LakeFacts(calls_by_address={address: RecordedCalls(1, 2, 3)}))
    assert (row["broker_address"], row["host"], row["port"]) == (address, host, port)


def test_an_advertised_address_is_written_as_that_of_exchanges() -> None:
    named = [
        NamedBroker("a:1", "A", 1, "2001:0db8::0001", 9092, None, 1, 1),
        NamedBroker("a:1", "A", 1, "[2001:db8::1]", 9092, None, 2, 2),
    ]
    (row,) = broker_rows(
        LakeFacts(named_brokers=named, calls_by_address={"[2001:db8::1]:9092": RecordedCalls(3, 1, 1)})
    )
    assert (row["broker_address"], row["calls"], row["last_at"]) == ("[2001:db8::1]:9092", 3, 2)


def test_a_node_that_moved_has_its_newest_name() -> None:
    """FindCoordinator has no cluster id: the cluster is that of the broker which responded."""
    named = [
        NamedBroker("a:1", "A", 2, "10.0.0.2", 9092, "east", 1, 1),
        NamedBroker("a:1", None, 1, "10.0.0.2", 9092, None, 5, 5),
        NamedBroker("a:1", None, 3, "10.0.0.3", 9092, None, 5, 5),
        # By a broker whose own cluster is known by name alone.
        NamedBroker("10.0.0.2:9092", None, 4, "10.0.0.4", 9092, None, 5, 5),
    ]
    rows = broker_rows(LakeFacts(clusters={"a:1": "A"}, named_brokers=named))
    columns = ("broker_address", "cluster_id", "node_id", "rack")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        ("10.0.0.2:9092", "A", 1, "east"),
        ("10.0.0.3:9092", "A", 3, None),
        ("10.0.0.4:9092", "A", 4, None),
    ]
