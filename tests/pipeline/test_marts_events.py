"""Bodies become flat events: runs of acknowledgements, answers without topics, requests without answer."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kafkascope.lake.tables import INGEST_ID, KEYS, body_table, message_of, table_named
from kafkascope.pipeline.mart import apis, facts, quorum, share, streams
from kafkascope.pipeline.mart.share_ranges import Columns, events_of
from kafkascope.pipeline.mart.sources import narrowed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUBJECTS = (apis, facts, quorum, share, streams)
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
    asked = {"group_id": "g", "member_id": "m", "share_session_epoch": 4}
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
            {"exchange_id": "answered", **asked, "topics": topics},
            {"exchange_id": "unanswered", **asked, "topics": topics},
            {"exchange_id": "failed", **asked, "topics": topics},
        ),
        "share_acknowledge_response": bodies(
            spark,
            "ShareAcknowledgeResponse",
            {"exchange_id": "answered", "error_code": 0, "responses": answer},
            {"exchange_id": "failed", "error_code": 122, "responses": []},
        ),
    }
    events = share.share_events(spark, tables, absent(share, tables))
    assert events is not None
    flat = [row for batch in events.toArrow().to_batches() for some in events_of(batch) for row in by_row(some)]
    found = [row for row in flat if row["kind"] == "acknowledged"]
    columns = ("partition", "first_offset", "last_offset", "value", "error_code")
    runs = [(0, 0, 9, 1), (0, 10, 11, 1), (0, 12, 12, 0), (0, 13, 14, 2), (1, 7, 7, 3)]
    for exchange, error in (("answered", (0, 121)), ("unanswered", (None, None)), ("failed", (122, 122))):
        told = [tuple(row[name] for name in columns) for row in found if row["exchange_id"] == exchange]
        assert told == [(*run, error[run[0]]) for run in runs]
    sessions = [(row.exchange_id, row.value, row.error_code) for row in events.collect() if row.kind == "session"]
    assert sessions == [("failed", 4, 122)]


def test_an_answer_without_topics_is_an_answer(spark: "SparkSession") -> None:
    partition = {"replica_id": 3, "replica_epoch": 7, "last_offset": 90, "pre_vote": True}
    asked = {"cluster_id": "k", "voter_id": 1, "topics": [{"partitions": [partition]}]}
    granted = {
        "topics": [{"partitions": [{"vote_granted": True, "leader_id": -1, "leader_epoch": 7, "error_code": 0}]}]
    }
    tables = {
        "vote_request": bodies(spark, "VoteRequest", *({"exchange_id": one, **asked} for one in ("a", "b", "c"))),
        "vote_response": bodies(
            spark,
            "VoteResponse",
            {"exchange_id": "a", "error_code": 0, **granted},
            {"exchange_id": "b", "error_code": 104, "topics": []},
        ),
    }
    events = quorum.quorum_events(spark, tables, absent(quorum, tables), {})
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

    both = (("raft", quorum.METADATA_TOPIC_ID), ("data", TOPIC))
    tables = {
        "fetch_request": bodies(spark, "FetchRequest", *(fetch(*one) for one in both)),
        "fetch_response": bodies(spark, "FetchResponse", *(answer(*one) for one in both)),
    }
    events = quorum.quorum_events(spark, tables, absent(quorum, tables), {"b:9092": "k"})
    assert events is not None
    found = sorted((row.kind, row.exchange_id, row.cluster_id, row.records_bytes) for row in events.collect())
    # A request log does not tell the size of records: null, not 0.
    assert found == [("fetch", "raft", "k", None), ("fetch_answer", "raft", "k", None)]


@pytest.mark.parametrize("module", SUBJECTS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_all_that_is_needed_of_a_table_is_there(module: Any) -> None:
    for name, paths in module.TABLES.items():
        schema = table_named(name).schema
        for path in paths.split():
            assert len(narrowed(schema, {path})) == 1, (name, path)
            assert _depth(narrowed(schema, {path}).field(0).type, path.split(".")[1:]), (name, path)


def _depth(type_: pa.DataType, below: list[str]) -> bool:
    while pa.types.is_list(type_):
        type_ = type_.value_type
    if not below:
        return True
    names = [type_.field(index).name for index in range(type_.num_fields)]
    return names == below[:1] and _depth(type_.field(0).type, below[1:])


def test_a_lake_without_a_table_has_no_events_of_it(spark: "SparkSession") -> None:
    for module, events in ((share, share.share_events), (streams, streams.streams_events)):
        assert events(spark, {}, frozenset(module.TABLES)) is None
    assert quorum.quorum_events(spark, {}, frozenset(quorum.TABLES), {}) is None
    assert all(message_of(name) or name in ("connections", "exchanges") for one in SUBJECTS for name in one.TABLES)
    assert {*KEYS.names, INGEST_ID} <= set(table_named("share_fetch_request").schema.names)
