"""Writes the SQL of flat events: every statement has all columns of its subject, in one order and type, so that one
union has them all."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


class TablesByName(Protocol):
    """DataFrames by the names of their tables."""

    def __getitem__(self, name: str, /) -> "DataFrame": ...


# The topic id in bodies that means none.
NO_TOPIC = "AAAAAAAAAAAAAAAAAAAAAA"

# By this a row is before or after a checkpoint, whatever it shows: the time of its exchange.
ROW_AT = "unix_micros(coalesce({0}.request_at, {0}.response_at))"

# A statement has no rows if one of these tables has none; tables of left joins may be missing.
_NEEDED = re.compile(r"(?:FROM|(?<!LEFT )JOIN)\s+\{(\w+)\}")
_NAMED = re.compile(r"\{(\w+)\}")


def columns_of(text: str) -> dict[str, str]:
    """Name to type, from `kind string, at_us bigint`."""
    return dict(part.split() for part in text.split(","))


def select(columns: Mapping[str, str], source: str, **values: str) -> str:
    """Columns without a value are null."""
    return f"SELECT {', '.join(f'{value} AS `{name}`' for name, value in _all(columns, values).items())}\n{source}"


def struct(columns: Mapping[str, str], **values: str) -> str:
    """The same as one value, for messages with several events each: `inline` turns them into rows."""
    return f"named_struct({', '.join(f'{name!r}, {value}' for name, value in _all(columns, values).items())})"


def _all(columns: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    assert values.keys() <= columns.keys(), values.keys() - columns.keys()
    return {name: f"CAST({values.get(name, 'NULL')} AS {type_})" for name, type_ in columns.items()}


def flat_map(array: str, name: str, value: str) -> str:
    """A flat array of `value`, itself an array, for each `name` of the array; empty if the array is null."""
    return f"coalesce(flatten(transform({array}, {name} -> coalesce({value}, array()))), array())"


def disconnected(columns: Mapping[str, str], requests: str, order: str) -> str:
    """Ends of the connections on which members sent these requests. A connection that a later ingest resumed has
    several rows."""
    source = f"""
FROM (SELECT connection_id, broker_address, min(closed_at) AS at FROM {{connections}}
      WHERE closed IN ('fin', 'reset') GROUP BY ALL) c
JOIN (SELECT DISTINCT connection_id, group_id, member_id FROM {{{requests}}}) q USING (connection_id)
"""
    return select(
        columns,
        source,
        kind="'disconnected'",
        at_us="unix_micros(c.at)",
        order=order,
        group_id="q.group_id",
        connection_id="c.connection_id",
        broker="c.broker_address",
        member_id="q.member_id",
    )


def union(
    spark: "SparkSession", statements: Iterable[str], tables: TablesByName, absent: Collection[str]
) -> "DataFrame | None":
    """Leaves out statements about tables without rows: most recordings have one kind of group, and planning costs more
    than reading them. Returns None if nothing is left."""
    text = union_text(statements, absent)
    return None if text is None else spark.sql(text, **named_tables(text, tables))


def union_text(statements: Iterable[str], absent: Collection[str]) -> str | None:
    usable = [text for text in statements if not any(name in absent for name in _NEEDED.findall(text))]
    return "\nUNION ALL\n".join(usable) or None


def named_tables(text: str, tables: TablesByName) -> dict[str, Any]:
    """The tables that a statement names."""
    return {name: tables[name] for name in set(_NAMED.findall(text))}


@dataclass(frozen=True, slots=True)
class GroupClusters:
    """Groups whose name brokers of several clusters know: those are several groups. There an address of an unknown
    cluster is a cluster of its own."""

    clusters: Mapping[str, str]
    ambiguous: frozenset[str]

    def of(self, group_id: str, broker: str | None) -> str | None:
        return self.clusters.get(broker or "", broker) if group_id in self.ambiguous else None

    def add_to(self, rows: "DataFrame") -> "DataFrame":
        """With `cluster`, null but for such groups."""
        from pyspark.sql import functions as f

        cluster = f.lit(None)
        if self.ambiguous:
            group_cluster = f.coalesce(_cluster(self.clusters), f.col("broker"))
            cluster = f.when(f.col("group_id").isin(*self.ambiguous), group_cluster)
        return rows.withColumn("cluster", cluster.cast("string"))

    def checked(self, states: "DataFrame") -> "DataFrame":
        """States of groups, which fail the job if a group has become ambiguous since, or isn't any more."""
        from pyspark.sql import functions as f

        apart = f.col("group_id").isin(*self.ambiguous) if self.ambiguous else f.lit(False)
        same = f.col("cluster").isNotNull() == apart
        return states.withColumn("cluster", f.when(same, f.col("cluster")).otherwise(f.raise_error(f.lit("clusters"))))


def group_clusters(clusters: Mapping[str, str], *events: "DataFrame | None") -> GroupClusters:
    """`events` have the columns `group_id` and `broker`, `clusters` the ids of addresses."""
    if len(set(clusters.values())) < 2 or all(rows is None for rows in events):
        return GroupClusters(clusters, frozenset())
    spoke = [rows.select("group_id", _cluster(clusters).alias("cluster")) for rows in events if rows is not None]
    pairs = reduce(lambda rows, more: rows.union(more), spoke).where("cluster IS NOT NULL").distinct()
    several = pairs.groupBy("group_id").count().where("count > 1").collect()
    return GroupClusters(clusters, frozenset(row.group_id for row in several))


def _cluster(clusters: Mapping[str, str]) -> "Column":
    from pyspark.sql import functions as f

    return f.try_element_at(f.create_map(*[f.lit(text) for pair in clusters.items() for text in pair]), f.col("broker"))
