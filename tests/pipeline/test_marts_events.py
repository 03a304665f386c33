"""Bodies become flat events: runs of acknowledgements, answers without topics, requests without answer."""

import json
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kafkascope.health.streams.events import statuses_of
from kafkascope.lake.home import make_lake
from kafkascope.lake.marts import MARTS
from kafkascope.lake.tables import INGEST_ID, KEYS, body_table, message_of, table_named
from kafkascope.pipeline.mart import apis
from kafkascope.pipeline.mart.base.raft import METADATA_TOPIC_ID_TEXT
from kafkascope.pipeline.mart.base.sources import narrow_schema
from kafkascope.pipeline.mart.history import quorum, streams
from kafkascope.pipeline.mart.history.walks import STREAMS_WALK, writer
from kafkascope.pipeline.mart.increments.plan import EVERY_ROW
from kafkascope.pipeline.mart.names import facts, topics_and_groups
from kafkascope.pipeline.mart.share import events as share
from kafkascope.pipeline.mart.share.ranges import Columns, events_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUBJECTS = (apis, facts, topics_and_groups, quorum, share, streams)
SECOND = timedelta(seconds=1)
AT = datetime(2026, 11, 15, 12, tzinfo=UTC)
TOPIC = "x67f1zwCR96dV41oFufCfw"


def bodies(spark: "SparkSession", message: str, *rows: dict[str, Any]) -> "DataFrame":
    """With the keys of an exchange each."""
    keys = {"connection_id": "c", "request_at": AT, "response_at": AT, "broker_address": "b:9092", "client_id": "app"}
    return spark.createDataFrame(pa.Table.from_pylist([{**keys, **row} for row in rows], body_table(message).schema))


def absent(module: Any, tables: dict[str, Any]) -> frozenset[str]:
    return frozenset(name for name in module.TABLES if name not in tables)


def by_row(columns: Columns) -> list[dict[str, Any]]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def test_acknowledgements_become_runs_of_one_type(spark: "SparkSession") -> None:
    def batch(first: int, last: int, *types: int) -> dict[str, Any]:
        return {"first_offset": first, "last_offset": last, "acknowledge_types": list(types)}

    batches = [batch(0, 9, 1), batch(10, 14, 1, 1, 0, 2, 2), batch(20, 20)]
    places = [
        {"partition_index": 0, "acknowledgement_batches": batches},
        {"partition_index": 1, "acknowledgement_batches": [batch(7, 7, 3)]},
    ]
    request = {"group_id": "g", "member_id": "m", "share_session_epoch": 4}
    topics = [{"topic_id": TOPIC, "partitions": places}]
    answer = [
        {
            "topic_id": TOPIC,
            "partitions": [
                {"partition_index": 0, "error_code": 0},
                {"partition_index": 1, "error_code": 121},
            ],
        }
    ]
    tables = {
        "share_acknowledge_request": bodies(
            spark,
            "ShareAcknowledgeRequest",
            {"exchange_id": "answered", **request, "topics": topics},
            {"exchange_id": "unanswered", **request, "topics": topics},
            {"exchange_id": "failed", **request, "topics": topics},
        ),
        "share_acknowledge_response": bodies(
            spark,
            "ShareAcknowledgeResponse",
            {"exchange_id": "answered", "error_code": 0, "responses": answer},
            {"exchange_id": "failed", "error_code": 122, "responses": []},
        ),
    }
    events = share.share_events(spark, tables, absent(share, tables)).of_partitions
    assert events is not None
    flat = [row for batch in events.toArrow().to_batches() for some in events_of(batch) for row in by_row(some)]
    acknowledged = [row for row in flat if row["kind"] == "acknowledged"]
    columns = ("partition", "first_offset", "last_offset", "value", "error_code")
    runs = [(0, 0, 9, 1), (0, 10, 11, 1), (0, 12, 12, 0), (0, 13, 14, 2), (1, 7, 7, 3)]
    for exchange, error in (("answered", (0, 121)), ("unanswered", (None, None)), ("failed", (122, 122))):
        runs_found = [tuple(row[name] for name in columns) for row in acknowledged if row["exchange_id"] == exchange]
        assert runs_found == [(*run, error[run[0]]) for run in runs]
    # Nobody acquired: no partition to tell of a session.
    assert not [row for row in flat if row["kind"] == "session"]


ACQUIRED_RECORDS = {"first_offset": 0, "last_offset": 9, "delivery_count": 1}


def _altered(spark: "SparkSession", **answers: tuple[str, dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What the ledger is told of records that are gone, by (group, topic id, topic, partition, start offset)."""
    places: list[dict[str, Any]] = [
        {"partition_index": index, "error_code": 0, "acquired_records": [ACQUIRED_RECORDS]} for index in (0, 1)
    ]
    fetched = {"responses": [{"topic_id": TOPIC, "partitions": places}], "error_code": 0}
    request = {"group_id": "g", "exchange_id": "fetch"}
    tables = {
        "share_fetch_request": bodies(spark, "ShareFetchRequest", request),
        "share_fetch_response": bodies(spark, "ShareFetchResponse", {**fetched, "exchange_id": "fetch"}),
    }
    for table, (message, row) in answers.items():
        tables[table] = bodies(spark, message, {"exchange_id": "e", **row})
    events = share.share_events(spark, tables, absent(share, tables), topics={TOPIC: "orders"}).of_partitions
    assert events is not None
    columns = ("group_id", "topic_id", "topic", "partition", "start_offset")
    return sorted(tuple(row[name] for name in columns) for row in events.collect() if row.kind == "altered")


def test_what_was_refused_of_a_change_to_offsets_changes_nothing(spark: "SparkSession") -> None:
    places = [{"partition_index": 0, "error_code": 0}, {"partition_index": 1, "error_code": 3}]
    answer = {"error": "UNKNOWN_TOPIC_OR_PARTITION", "error_code": 0}
    altered = {"topic_id": TOPIC, "topic_name": "orders", "partitions": places}
    assert _altered(
        spark,
        alter_share_group_offsets_request=("AlterShareGroupOffsetsRequest", {"group_id": "g"}),
        alter_share_group_offsets_response=("AlterShareGroupOffsetsResponse", {**answer, "responses": [altered]}),
    ) == [("g", TOPIC, "orders", 0, None)]
    # `offset` -1 asks for all there is: how much that was, the answer says.
    lows = [{**place, "low_watermark": low} for place, low in zip(places, (70, -1), strict=True)]
    deleted = {"error": answer["error"], "topics": [{"name": "orders", "partitions": lows}]}
    assert _altered(spark, delete_records_response=("DeleteRecordsResponse", deleted)) == [
        ("g", TOPIC, "orders", 0, 70)
    ]


def test_offsets_and_topics_that_were_deleted_are_gone_in_every_partition(spark: "SparkSession") -> None:
    done = [{"topic_id": TOPIC, "error_code": 0}, {"topic_id": "NvZ1zIHnTvWo4l2UDtkEdQ", "error_code": 0}]
    offsets = {"error_code": 0, "responses": done}
    assert _altered(
        spark,
        delete_share_group_offsets_request=("DeleteShareGroupOffsetsRequest", {"group_id": "g"}),
        delete_share_group_offsets_response=("DeleteShareGroupOffsetsResponse", offsets),
    ) == [("g", TOPIC, None, 0, None), ("g", TOPIC, None, 1, None)]
    topics = _altered(spark, delete_topics_response=("DeleteTopicsResponse", {"responses": done}))
    assert topics == [("g", TOPIC, None, index, 2**63 - 1) for index in (0, 1)]
    refused = [{"topic_id": TOPIC, "error_code": 29}]
    assert not _altered(spark, delete_topics_response=("DeleteTopicsResponse", {"responses": refused}))


def test_what_happens_to_a_member_reaches_the_partitions_that_it_acquired_there(spark: "SparkSession") -> None:
    """And no other: of two members and two brokers, over several connections."""
    fetches = [
        ("1", "m", "b:1", "c1", [0, 1], 0), ("2", "m", "b:1", "c2", [1], 0), ("3", "n", "b:1", "c3", [2], 0),
        ("4", "m", "b:2", "c4", [3], 0), ("5", "m", "b:1", "c2", [], -1), ("6", "k", "b:1", "c5", [], 0),
    ]  # fmt: skip
    requests, responses = [], []
    for number, (exchange, member, broker, connection, partitions, epoch) in enumerate(fetches):
        at = AT + number * SECOND
        keys = {"exchange_id": exchange, "connection_id": connection, "broker_address": broker}
        times = {"request_at": at, "response_at": at}
        requests.append({**keys, **times, "group_id": "g", "member_id": member, "share_session_epoch": epoch})
        places = [{"partition_index": index, "acquired_records": [ACQUIRED_RECORDS]} for index in partitions]
        responses.append({**keys, **times, "error_code": 0, "responses": [{"topic_id": TOPIC, "partitions": places}]})
    closed = [
        {"connection_id": name, "broker_address": "b:1", "closed": "fin", "closed_at": AT} for name in ("c1", "c5")
    ]
    tables = {
        "share_fetch_request": bodies(spark, "ShareFetchRequest", *requests),
        "share_fetch_response": bodies(spark, "ShareFetchResponse", *responses),
        "connections": spark.createDataFrame(pa.Table.from_pylist(closed, table_named("connections").schema)),
    }
    events = share.share_events(spark, tables, absent(share, tables)).of_partitions
    assert events is not None
    rows = events.collect()

    def places_of(kind: str, *columns: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row[name] for name in (*columns, "partition")) for row in rows if row.kind == kind)

    assert places_of("session", "exchange_id", "value") == [
        ("1", 0, 0), ("1", 0, 1), ("2", 0, 0), ("2", 0, 1), ("3", 0, 2), ("4", 0, 3), ("5", -1, 0), ("5", -1, 1),
    ]  # fmt: skip
    assert places_of("linked", "connection_id") == [("c1", 0), ("c1", 1), ("c2", 0), ("c2", 1)]
    assert places_of("disconnected", "connection_id") == [("c1", 0), ("c1", 1)]


def test_a_status_is_one_whatever_its_detail_has(spark: "SparkSession") -> None:
    status = [{"status_code": 1, "status_detail": "missing:\n2 topics"}, {"status_code": 4, "status_detail": ""}]
    tables = {
        "streams_group_heartbeat_request": bodies(
            spark, "StreamsGroupHeartbeatRequest", {"exchange_id": "e", "group_id": "g", "member_id": "m"}
        ),
        "streams_group_heartbeat_response": bodies(
            spark, "StreamsGroupHeartbeatResponse", {"exchange_id": "e", "error_code": 0, "status": status}
        ),
    }
    events, _ = streams.streams_events(spark, tables, absent(streams, tables))
    assert events is not None
    (detail,) = (row.status for row in events.collect() if row.kind == "answer")
    assert statuses_of(detail) == ((1, "missing: 2 topics"), (4, ""))


def test_groups_of_one_name_in_two_clusters_are_walked_apart(spark: "SparkSession") -> None:
    def beat(number: int, group_id: str, broker: str) -> dict[str, Any]:
        return {"exchange_id": str(number), "group_id": group_id, "broker_address": broker}

    beats = [("both", "a:1"), ("both", "b:1"), ("both", "a:2"), ("both", "c:1"), ("one", "a:1"), ("one", "c:1")]
    rows = [beat(number, *facts) for number, facts in enumerate(beats)]
    tables = {"streams_group_heartbeat_request": bodies(spark, "StreamsGroupHeartbeatRequest", *rows)}

    def walks(clusters: dict[str, str]) -> list[list[str]]:
        events, _ = streams.streams_events(spark, tables, absent(streams, tables), lambda: clusters)
        assert events is not None
        rows_found = sorted((row.group_id, row.cluster or "", row.exchange_id) for row in events.collect())
        return [[name for _, _, name in some] for _, some in groupby(rows_found, itemgetter(0, 1))]

    # Nobody told the cluster of c:1. A group that is in one alone speaks with it there.
    assert walks({"a:1": "A", "a:2": "A", "b:1": "B"}) == [["0", "2"], ["1"], ["3"], ["4", "5"]]
    assert walks({"a:1": "A"}) == walks({}) == [["0", "1", "2", "3"], ["4", "5"]]


def test_a_task_does_not_move_from_one_cluster_to_another(spark: "SparkSession", tmp_path: Path) -> None:
    tasks = {"member_epoch": 1, "active_tasks": [{"subtopology_id": "0", "partitions": [0]}], "group_id": "g"}
    rows = [
        {**tasks, "exchange_id": member, "member_id": member, "broker_address": broker, "request_at": AT + at * SECOND}
        for at, (member, broker) in enumerate((("one", "a:1"), ("two", "b:1"), ("one", "a:1")))
    ]
    tables = {"streams_group_heartbeat_request": bodies(spark, "StreamsGroupHeartbeatRequest", *rows)}

    def written(clusters: dict[str, str]) -> dict[str, int]:
        events, _ = streams.streams_events(spark, tables, absent(streams, tables), lambda: clusters)
        assert events is not None
        write = writer(make_lake(tmp_path), EVERY_ROW, STREAMS_WALK, ("group_id", "cluster"), facts.LakeFacts())
        files = [
            json.loads(text)
            for batch in write(iter(events.toArrow().to_batches()))
            for text in batch["file"].to_pylist()
        ]
        return {file["table"]: file["rows"] for file in files}

    assert written({"a:1": "A", "b:1": "A"})["streams_moves"] == 2
    apart = written({"a:1": "A", "b:1": "B"})
    assert "streams_moves" not in apart and apart["streams_tasks"] == 2


def test_of_equal_calls_the_same_one_is_named_however_they_lie(spark: "SparkSession") -> None:
    call = {"api_key": 1, "api": "Fetch", "api_version": 4, "request_at": AT, "latency_us": 7, "status": "answered"}
    wrong = {"error_code": 3, "error": "X", "throttle_ms": 5, "connection_id": "c"}
    calls = [{**call, **wrong, "exchange_id": name} for name in "abc"]
    calls.append({**call, "exchange_id": "d", "api": "Vote", "latency_us": None, "status": "unanswered"})

    def named(rows: list[dict[str, Any]]) -> list[tuple[str, str, Any]]:
        schema = narrow_schema(table_named("exchanges").schema, set(apis.TABLES["exchanges"].split()))
        collected = apis.api_rows(spark, spark.createDataFrame(pa.Table.from_pylist(rows, schema)), EVERY_ROW).collect()
        marts = [(row.mart, row[row.mart]) for row in collected if row.mart in MARTS]
        whose = {"api_latency": "slowest", "api_errors": "first", "throttling": "longest", "client_versions": "last"}
        return sorted((mart, fact.api, fact[f"{whose[mart]}_exchange_id"] or "") for mart, fact in marts)

    assert named(calls) == named(calls[::-1]) == [
        ("api_errors", "Fetch", "a"), ("api_latency", "Fetch", "c"), ("api_latency", "Vote", ""),
        ("client_versions", "Fetch", "c"), ("client_versions", "Vote", "d"), ("throttling", "Fetch", "c"),
    ]  # fmt: skip


def test_percentiles_of_latency_are_the_same_however_files_lie(spark: "SparkSession") -> None:
    """And the calls that they name are at their rank, to one part in ten thousand."""
    random = Random(7)
    micros = [int(random.lognormvariate(9, 2)) + 1 for _ in range(40_000)]
    call = {"api_key": 1, "api": "Fetch", "request_at": AT, "status": "answered", "broker_address": "b:9092"}
    rows = [{**call, "exchange_id": str(number), "latency_us": latency} for number, latency in enumerate(micros)]
    schema = narrow_schema(table_named("exchanges").schema, set(apis.TABLES["exchanges"].split()))

    def percentiles(order: list[dict[str, Any]], files: int) -> list[int]:
        frame = spark.createDataFrame(pa.Table.from_pylist(order, schema)).repartition(files, "exchange_id")
        (row,) = apis.api_rows(spark, frame, EVERY_ROW).where("mart = 'api_latency'").collect()
        return [row.api_latency[name] for name in ("p50_us", "p95_us", "p99_us", "max_us")]

    calculated = percentiles(rows, 2)
    assert calculated == percentiles(rows[::-1], 7)
    ranked = sorted(micros)
    for micros_found, percent in zip(calculated, (50, 95, 99, 100), strict=True):
        exact = ranked[len(ranked) * percent // 100 - 1]
        assert micros_found in ranked and exact <= micros_found <= exact * 1.0001


def test_facts_of_a_broker_are_few_however_many_files_recorded_it(spark: "SparkSession") -> None:
    """Files that go on within ten seconds are one recording; all that was observed is none."""
    second, files = 1_000_000, [(0, 60), (61, 120), (30, 40), (200, 260), (None, None)]
    files += [(260 + at, 261 + at) for at in range(300)]
    rows = [
        {"exchange_id": str(number), "capture_uri": f"file-{number}", "broker_address": "b:9092",
         "request_at": None if low is None else low * second, "response_at": None if high is None else high * second}
        for number, (low, high) in enumerate(files)
    ]  # fmt: skip
    rows += [{**rows[0], "capture_uri": f"observe://{number}", "exchange_id": f"o{number}"} for number in range(9)]
    schema = narrow_schema(table_named("exchanges").schema, set(facts.TABLES["exchanges"].split()))
    tables = {"exchanges": spark.createDataFrame(pa.Table.from_pylist(rows, schema))}
    missing = frozenset(facts.TABLES) - {"exchanges"}
    collected = facts.fact_rows(spark, tables, missing)
    assert collected is not None and collected.count() == 4
    lake_facts, _ = facts.collect_facts(spark, tables, missing)
    assert lake_facts.recorded == {"b:9092": [(0, 120 * second), (200 * second, 560 * second)]}
    calls = lake_facts.calls_by_address["b:9092"]
    assert (calls.calls, calls.low, calls.high) == (len(rows), 0, 560 * second)


def test_an_answer_without_topics_is_an_answer(spark: "SparkSession") -> None:
    partition = {"replica_id": 3, "replica_epoch": 7, "last_offset": 90, "pre_vote": True}
    request = {"cluster_id": "k", "voter_id": 1, "topics": [{"partitions": [partition]}]}
    granted = {
        "topics": [{"partitions": [{"vote_granted": True, "leader_id": -1, "leader_epoch": 7, "error_code": 0}]}]
    }
    tables = {
        "vote_request": bodies(
            spark, "VoteRequest", *({"exchange_id": exchange_id, **request} for exchange_id in ("a", "b", "c"))
        ),
        "vote_response": bodies(
            spark,
            "VoteResponse",
            {"exchange_id": "a", "error_code": 0, **granted},
            {"exchange_id": "b", "error_code": 104, "topics": []},
        ),
    }
    events, _ = quorum.quorum_events(spark, tables, absent(quorum, tables), {})
    assert events is not None
    columns = ("exchange_id", "kind", "node_id", "peer_id", "epoch", "pre_vote", "granted", "error_code")
    candidate = (3, 1, 7, True)
    assert sorted(tuple(row[name] for name in columns) for row in events.collect()) == [
        ("a", "vote", *candidate, None, None),
        ("a", "vote_answer", *candidate, True, 0),
        ("b", "vote", *candidate, None, None),
        ("b", "vote_answer", *candidate, None, 104),
        ("c", "vote", *candidate, None, None),
    ]


def test_fetches_of_other_topics_are_no_raft(spark: "SparkSession") -> None:
    def fetch(exchange_id: str, topic_id: str) -> dict[str, Any]:
        place = {"fetch_offset": 5, "current_leader_epoch": 2}
        return {"exchange_id": exchange_id, "topics": [{"topic_id": topic_id, "partitions": [place]}]}

    def answer(exchange_id: str, topic_id: str) -> dict[str, Any]:
        place = {"error_code": 0, "high_watermark": 5, "current_leader": {"leader_id": 1, "leader_epoch": 2}}
        return {
            "exchange_id": exchange_id,
            "error_code": 0,
            "responses": [{"topic_id": topic_id, "partitions": [place]}],
        }

    both = (("raft", METADATA_TOPIC_ID_TEXT), ("data", TOPIC))
    tables = {
        "fetch_request": bodies(spark, "FetchRequest", *(fetch(*arguments) for arguments in both)),
        "fetch_response": bodies(spark, "FetchResponse", *(answer(*arguments) for arguments in both)),
    }
    events, _ = quorum.quorum_events(spark, tables, absent(quorum, tables), {"b:9092": "k"})
    assert events is not None
    rows_found = sorted((row.kind, row.exchange_id, row.cluster_id, row.records_bytes) for row in events.collect())
    # A request log does not tell the size of records: null, not 0.
    assert rows_found == [("fetch", "raft", "k", None), ("fetch_answer", "raft", "k", None)]


@pytest.mark.parametrize("module", SUBJECTS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_all_that_is_needed_of_a_table_is_there(module: Any) -> None:
    for name, paths in module.TABLES.items():
        schema = table_named(name).schema
        for path in paths.split():
            assert len(narrow_schema(schema, {path})) == 1, (name, path)
            assert _depth(narrow_schema(schema, {path}).field(0).type, path.split(".")[1:]), (name, path)


def _depth(type_: pa.DataType, below: list[str]) -> bool:
    while pa.types.is_list(type_):
        type_ = type_.value_type
    if not below:
        return True
    names = [type_.field(index).name for index in range(type_.num_fields)]
    return names == below[:1] and _depth(type_.field(0).type, below[1:])


def test_a_lake_without_a_table_has_no_events_of_it(spark: "SparkSession") -> None:
    events = share.share_events(spark, {}, frozenset(share.TABLES))
    assert events.of_partitions is None and events.of_groups is None
    assert streams.streams_events(spark, {}, frozenset(streams.TABLES)) == (None, None)
    assert quorum.quorum_events(spark, {}, frozenset(quorum.TABLES), {}) == (None, None)
    assert all(
        message_of(name) or name in ("connections", "exchanges") for subject in SUBJECTS for name in subject.TABLES
    )
    assert {*KEYS.names, INGEST_ID} <= set(table_named("share_fetch_request").schema.names)
