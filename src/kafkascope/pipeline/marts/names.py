"""Whatever answers name a topic with its id in, topic ids and names out: newer messages carry the id alone."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    class Tables(Protocol):
        def __getitem__(self, name: str) -> DataFrame: ...

        def absent(self, *names: str) -> frozenset[str]: ...


# Table, path to the topics, names of its columns.
_TELLING = (
    ("metadata_response", "topics", "name"),
    ("create_topics_response", "topics", "name"),
    ("describe_topic_partitions_response", "topics", "name"),
    ("alter_share_group_offsets_response", "responses", "topic_name"),
)
_NESTED = (("describe_share_group_offsets_response", "groups", "topics", "topic_name"),)
_NO_TOPIC = "AAAAAAAAAAAAAAAAAAAAAA"


def topic_names(spark: "SparkSession", tables: "Tables") -> "DataFrame":
    """One name an id, the first by the alphabet: ids never change their topic."""
    found = spark.createDataFrame([], "topic_id string, name string")
    absent = tables.absent(*(row[0] for row in (*_TELLING, *_NESTED)))
    for table, topics, name in _TELLING:
        if table in absent:
            continue
        one = tables[table].selectExpr(f"inline(transform({topics}, t -> struct(t.topic_id, t.{name} AS name)))")
        found = found.unionByName(one)
    for table, above, topics, name in _NESTED:
        if table in absent:
            continue
        inside = f"flatten(transform({above}, g -> transform(g.{topics}, t -> struct(t.topic_id, t.{name} AS name))))"
        found = found.unionByName(tables[table].selectExpr(f"inline({inside})"))
    known = found.where(f"topic_id IS NOT NULL AND name IS NOT NULL AND topic_id <> '{_NO_TOPIC}'")
    return known.groupBy("topic_id").agg({"name": "min"}).withColumnRenamed("min(name)", "name")
