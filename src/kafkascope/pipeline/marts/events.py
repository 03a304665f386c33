"""Statements and the tables they name in, one DataFrame of events out. A statement about tables that the lake does not
have is left out: most recordings have one kind of group, and planning costs more than reading them."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NEEDED = re.compile(r"(?:FROM|(?<!LEFT )JOIN)\s+\{(\w+)\}")
_NAMED = re.compile(r"\{(\w+)\}")


def union(
    spark: "SparkSession",
    columns: str,
    statements: Iterable[str],
    tables: Mapping[str, "DataFrame"],
    absent: Collection[str],
) -> "DataFrame | None":
    """None where no statement has all the tables that it needs."""
    events = None
    for statement in statements:
        if any(name in absent for name in _NEEDED.findall(statement)):
            continue
        given: dict[str, Any] = {name: tables[name] for name in set(_NAMED.findall(statement))}
        rows = spark.sql(statement, **given)
        if events is None:
            events = spark.createDataFrame([], columns)
        events = events.unionByName(rows, allowMissingColumns=True)
    return events
