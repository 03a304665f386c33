"""The state of a part that walks groups: of its walks, and over which connections groups spoke, and with which brokers,
since what happens to a connection after a checkpoint concerns who spoke over it before."""

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafkascope.health.share.book import CROSSED_US
from kafkascope.lake.home import Lake
from kafkascope.lake.marts import MART_STATE, MART_STATE_SCHEMA
from kafkascope.pipeline.mart.base.events import TablesByName, named_tables
from kafkascope.pipeline.mart.base.multi_writer import SEGMENT_START, rows_of_several
from kafkascope.pipeline.mart.increments.plan import Plan
from kafkascope.pipeline.mart.increments.state import state_paths, state_rows
from kafkascope.pipeline.mart.increments.sums import Sums

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import DataFrame, SparkSession

LINKS = "links"
# The kind of a row that has the state of a walk instead of an event. It comes before all events.
STATE = "state"
# Of the states of walks in `mart_state`.
WALKS = "walks"
_CLOSED = """
SELECT connection_id, unix_micros(min(closed_at)) AS at FROM {connections}
WHERE closed IN ('fin', 'reset') GROUP BY connection_id
"""


def sums_of(name: str, *keys: str) -> Sums:
    return Sums(name, dict.fromkeys(keys, "string"), {"last_at": ("bigint", "max")})


def first_of(name: str, keys: "dict[str, str]") -> Sums:
    return Sums(name, keys, {"first_at": ("bigint", "min")})


# Which brokers knew a group.
SPOKE_SUMS = sums_of("spoke", "group_id", "broker")


class WithLinks:
    """Tables, and as one more of them the connections so far, or others by name."""

    def __init__(self, tables: TablesByName, links: "DataFrame | None", **more: "DataFrame | None") -> None:
        self._tables, self._more = tables, {LINKS: links, **more}

    def __getitem__(self, name: str) -> "DataFrame":
        if name not in self._more:
            return self._tables[name]
        frame = self._more[name]
        assert frame is not None
        return frame


class Kept:
    """The state of one part, but for its walks: read at the plan's start, and written at its marks."""

    def __init__(self, spark: "SparkSession", lake: Lake | None, plan: Plan) -> None:
        self._spark, self._lake, self._plan = spark, lake, plan
        self._paths = [] if lake is None else state_paths(lake, plan)
        self._frames: dict[str, DataFrame] = {}
        self._statements: list[str] = []

    def added(self, sums: Sums, rows: "DataFrame | None") -> "DataFrame | None":
        """The sums of now. Those at the marks are written with `rows`."""
        state = self._state(sums.name, sums.columns)
        added = sums.added(self._spark, rows, state, self._plan)
        if added is None:
            return None
        self._frames[sums.name] = added
        self._statements.append(sums.state_statement(sums.name, self._plan))
        return added.where(sums.now(self._plan))

    def without_closed(self, sums: Sums, tables: TablesByName, absent: "Collection[str]") -> None:
        """Connections that were closed a while before a mark need no state there."""
        links = self._frames.get(sums.name)
        if links is None or "connections" in absent or not self._plan.marks:
            return
        closed = self._spark.sql(_CLOSED, **named_tables(_CLOSED, tables))
        self._frames[sums.name] = self._spark.sql(
            f"SELECT l.* FROM {{links}} l LEFT ANTI JOIN {{closed}} c ON l.connection_id = c.connection_id"
            f" AND number < {len(self._plan.marks)} AND c.at < {self._plan.mark('number')} - {CROSSED_US}",
            links=links,
            closed=closed,
        )

    def walks(self, columns: "Mapping[str, str]", keys: "Collection[str]", of: str = WALKS) -> "DataFrame | None":
        """The states of walks as rows with these columns, among events: each before all events of its walk."""
        state = self._state(of, {**{key: columns.get(key, "string") for key in keys}, STATE: "string"})
        if state is None:
            return None
        values = {name: f"`{name}`" for name in keys} | {"kind": f"'{STATE}'", "at_us": str(self._plan.since - 1)}
        every = {**dict.fromkeys(keys, "string"), **columns}
        listed = (f"CAST({values.get(name, 'NULL')} AS {kind}) AS `{name}`" for name, kind in every.items())
        return state.selectExpr(*listed, STATE)

    def rows(self) -> "DataFrame | None":
        """The state at the marks, for `writer_of_several`."""
        if not self._statements or not self._plan.marks:
            return None
        return rows_of_several(self._spark, {MART_STATE: "\nUNION ALL\n".join(self._statements)}, **self._frames)

    def _state(self, key: str, columns: "Mapping[str, str]") -> "DataFrame | None":
        return None if self._lake is None else state_rows(self._spark, self._lake, self._paths, key, columns)


def state_row(plan: Plan, at: int, key: str, state: "Mapping[str, Any]") -> pa.Table:
    """A row of `mart_state` at a mark, for `SegmentFiles`."""
    columns = {
        "part": [plan.part],
        "checkpoint_at": pa.array([at], pa.int64()).cast(MART_STATE_SCHEMA.field("checkpoint_at").type),
        "key": [key],
        "state": [json.dumps(state)],
        SEGMENT_START: pa.array([at], pa.int64()),
    }
    return pa.table(columns)
