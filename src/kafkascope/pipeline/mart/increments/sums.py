"""Adds up rows that have been counted up to a checkpoint and those since: the sums now, and at every new checkpoint."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kafkascope.pipeline.mart.increments.once import once
from kafkascope.pipeline.mart.increments.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Sums:
    """Rows with the same `keys` are one; `values` have a type and the aggregate that makes one of several."""

    name: str
    keys: Mapping[str, str]
    values: Mapping[str, tuple[str, str]]

    @cached_property
    def columns(self) -> dict[str, str]:
        return {**self.keys, **{name: kind for name, (kind, _) in self.values.items()}}

    def added(
        self, spark: "SparkSession", rows: "DataFrame | None", state: "DataFrame | None", plan: Plan
    ) -> "DataFrame | None":
        """`rows` have `row_at` in microseconds, `state` is that at `plan.since`. Each sum has the `number` of the mark
        that it is of; those of now have the number of marks."""
        parts = []
        tables: dict[str, Any] = {}
        if rows is not None:
            within, segment = plan.within("row_at"), plan.segment("row_at")
            parts.append(f"SELECT {segment} AS segment, {self._list()} FROM {{rows}} WHERE {within}")
            tables["rows"] = rows
        if state is not None:
            parts.append(f"SELECT 0 AS segment, {self._list()} FROM {{state}}")
            tables["state"] = state
        if not parts:
            return None
        text = self._grouped("segment", " UNION ALL ".join(parts))
        numbers = f"SELECT *, explode(sequence(segment, {len(plan.marks)})) AS number FROM ({text})"
        return once(spark, spark.sql(self._grouped("number", numbers), **tables))

    def state_statement(self, table: str, plan: Plan) -> str:
        """Rows of `mart_state` of the sums at the marks."""
        return f"""
SELECT '{plan.part}' AS part, timestamp_micros({plan.mark("number")}) AS checkpoint_at, '{self.name}' AS key,
       to_json(struct({self._list()})) AS state, {plan.mark("number")} AS segment
FROM {{{table}}} WHERE number < {len(plan.marks)}
"""

    def now(self, plan: Plan) -> str:
        """SQL: which of the sums are those of now."""
        return f"number = {len(plan.marks)}"

    def _list(self) -> str:
        return ", ".join(f"`{name}`" for name in self.columns)

    def _grouped(self, by: str, source: str) -> str:
        keys = ", ".join(f"`{name}`" for name in self.keys)
        values = ", ".join(f"{aggregate}(`{name}`) AS `{name}`" for name, (_, aggregate) in self.values.items())
        return f"SELECT {by}, {keys}, {values} FROM ({source}) GROUP BY {by}, {keys}"
