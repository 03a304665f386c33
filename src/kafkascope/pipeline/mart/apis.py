"""Computes the marts of latency, errors, throttling and client versions from exchanges: one DataFrame, which one job
writes. Minutes before a checkpoint stay as they are; client versions are sums, with the connections that count."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafkascope.lake.home import Lake
from kafkascope.lake.marts import MART_CONNECTIONS, MART_STATE
from kafkascope.pipeline.mart.base.events import ROW_AT
from kafkascope.pipeline.mart.base.multi_writer import rows_of_several
from kafkascope.pipeline.mart.increments.kept import kept_rows
from kafkascope.pipeline.mart.increments.once import once
from kafkascope.pipeline.mart.increments.plan import Plan
from kafkascope.pipeline.mart.increments.state import state_paths, state_rows
from kafkascope.pipeline.mart.increments.sums import Sums
from kafkascope.schema.catalog import apis, message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = {
    "exchanges": "exchange_id connection_id request_at response_at latency_us long_poll api_key api api_version"
    " client_id broker_address client_software request_bytes response_bytes error_code error throttle_ms status",
}

# Significant bits of a latency that percentiles tell apart: one part in 16,384. Exact ones would have to sort every
# value, and those of `approx_percentile` differ with the order of the files.
_BITS = 14


def _exchange_with(aggregate: str, value: str) -> str:
    """The exchange with the largest or smallest value; ties go to the last or first id, so that the order of rows
    doesn't matter."""
    return f"{aggregate}_by(exchange_id, struct({value}, exchange_id))"


_LATENCY_KEYS = "minute_at, api, broker_address, long_poll"

_DROPPED = f"greatest(length(bin(latency_us)) - {_BITS}, 0)"
_ALIKE = f"shiftleft(shiftright(latency_us, {_DROPPED}), {_DROPPED})"


def _percentile(percent: int) -> str:
    """The longest of the latencies that share their leading bits with the exact percentile."""
    return f"min(IF(timed > 0 AND so_far * 100 >= total * {percent}, longest.latency_us, NULL))"


_API_LATENCY = f"""
SELECT {_LATENCY_KEYS},
       sum(calls) AS calls,
       sum(unanswered) AS unanswered,
       sum(errors) AS errors,
       sum(request_bytes) AS request_bytes,
       sum(response_bytes) AS response_bytes,
       {_percentile(50)} AS p50_us,
       {_percentile(95)} AS p95_us,
       {_percentile(99)} AS p99_us,
       max(longest).latency_us AS max_us,
       max(longest).exchange_id AS slowest_exchange_id
FROM (
  SELECT *, sum(timed) OVER (PARTITION BY {_LATENCY_KEYS} ORDER BY alike) AS so_far,
         sum(timed) OVER (PARTITION BY {_LATENCY_KEYS}) AS total
  FROM (
    SELECT date_trunc('MINUTE', request_at) AS minute_at, api, broker_address, long_poll,
           {_ALIKE} AS alike,
           count(*) AS calls,
           count(latency_us) AS timed,
           count_if(status = 'unanswered') AS unanswered,
           count_if(error_code <> 0) AS errors,
           sum(request_bytes) AS request_bytes,
           sum(response_bytes) AS response_bytes,
           max(IF(latency_us IS NULL, NULL, struct(latency_us, exchange_id))) AS longest
    FROM {{exchanges}}
    WHERE api IS NOT NULL AND request_at IS NOT NULL
    GROUP BY ALL
  )
)
GROUP BY ALL
"""

_API_ERRORS = f"""
SELECT date_trunc('MINUTE', request_at) AS minute_at, api, error_code, error, client_id, broker_address,
       count(*) AS calls,
       min(request_at) AS first_at,
       max(request_at) AS last_at,
       {_exchange_with("min", "request_at")} AS first_exchange_id
FROM {{exchanges}}
WHERE error_code <> 0 AND request_at IS NOT NULL
GROUP BY ALL
"""

_THROTTLING = f"""
SELECT date_trunc('MINUTE', request_at) AS minute_at, api, client_id, broker_address,
       count(*) AS calls,
       count_if(throttle_ms > 0) AS throttled,
       sum(throttle_ms) AS throttle_ms,
       max(throttle_ms) AS max_throttle_ms,
       {_exchange_with("max", "throttle_ms")} AS longest_exchange_id
FROM {{exchanges}}
WHERE throttle_ms IS NOT NULL AND request_at IS NOT NULL
GROUP BY minute_at, api, client_id, broker_address
HAVING max(throttle_ms) > 0
"""

_CLIENT = {
    "client_software": "string",
    "client_id": "string",
    "api_key": "smallint",
    "api": "string",
    "api_version": "smallint",
}
_CLIENT_KEYS = ", ".join(_CLIENT)
_SUMS = Sums(
    "client_versions",
    _CLIENT,
    {
        "calls": ("bigint", "sum"),
        "connections": ("bigint", "sum"),
        "first_at": ("bigint", "min"),
        "last_at": ("bigint", "max"),
        "newest": ("struct<at:bigint, exchange_id:string>", "max"),
    },
)
_REQUEST_AT = "unix_micros(request_at)"
_CALLS = f"""
SELECT {ROW_AT.format("exchanges")} AS row_at, {_CLIENT_KEYS}, 1 AS calls, 0 AS connections,
       {_REQUEST_AT} AS first_at, {_REQUEST_AT} AS last_at,
       IF(request_at IS NULL, NULL, struct({_REQUEST_AT} AS at, exchange_id)) AS newest
FROM {{exchanges}} AS exchanges WHERE api_key IS NOT NULL
"""
# A connection counts where it is seen first; `last` is after every time.
_LAST = (1 << 63) - 1
_CONNECTIONS = f"""
SELECT {_CLIENT_KEYS}, connection_id, min(coalesce({ROW_AT.format("e")}, {_LAST})) AS row_at
FROM {{exchanges}} AS e WHERE api_key IS NOT NULL AND connection_id IS NOT NULL
GROUP BY {_CLIENT_KEYS}, connection_id
"""
_UNKNOWN_CONNECTIONS = f"""
SELECT n.* FROM {{connections}} n LEFT ANTI JOIN {{kept}} k
ON {" AND ".join(f"n.{name} <=> k.{name}" for name in (*_CLIENT, "connection_id"))}
"""
_COUNTED = f"""
SELECT row_at, {_CLIENT_KEYS}, 0 AS calls, 1 AS connections, NULL AS first_at, NULL AS last_at, NULL AS newest
FROM {{connections}}
"""
_CLIENT_VERSIONS = """
SELECT s.client_software, s.client_id, s.api_key, s.api, s.api_version, s.calls, s.connections,
       timestamp_micros(s.first_at) AS first_at, timestamp_micros(s.last_at) AS last_at,
       r.first_release, r.last_release, coalesce(r.in_newest, false) AS in_newest_release,
       s.newest.exchange_id AS last_exchange_id
FROM {client_sums} AS s
LEFT JOIN {served} AS r ON s.api_key = r.api_key AND s.api_version = r.api_version
WHERE """


_WINDOWS = {"api_latency": _API_LATENCY, "api_errors": _API_ERRORS, "throttling": _THROTTLING}


def api_rows(spark: "SparkSession", exchanges: "DataFrame", plan: Plan, lake: Lake | None = None) -> "DataFrame":
    """`lake` has the state that the plan goes on from."""
    tables: dict[str, Any] = {"served": spark.createDataFrame(_served_versions())}
    tables["exchanges"] = spark.sql(
        f"SELECT * FROM {{exchanges}} AS e WHERE {plan.within(ROW_AT.format('e'))}", exchanges=exchanges
    )
    connections = spark.sql(_CONNECTIONS, exchanges=tables["exchanges"])
    kept = None if lake is None else kept_rows(spark, lake, MART_CONNECTIONS, plan)
    if kept is not None:
        connections = spark.sql(_UNKNOWN_CONNECTIONS, connections=connections, kept=kept)
    connections = once(spark, connections)
    calls = spark.sql(_CALLS, exchanges=tables["exchanges"])
    counted = spark.sql(_COUNTED, connections=connections)
    state = None if lake is None else state_rows(spark, lake, state_paths(lake, plan), _SUMS.name, _SUMS.columns)
    tables |= {"client_sums": _SUMS.added(spark, calls.unionByName(counted), state, plan), "connections": connections}
    start = plan.start("unix_micros(minute_at)")
    statements = {name: f"SELECT *, {start} AS segment FROM ({text})" for name, text in _WINDOWS.items()}
    statements["client_versions"] = _CLIENT_VERSIONS + _SUMS.now(plan)
    statements[MART_CONNECTIONS] = (
        f"SELECT {_CLIENT_KEYS}, connection_id, {plan.start('row_at')} AS segment FROM {{connections}}"
    )
    if plan.marks:
        statements[MART_STATE] = _SUMS.state_statement("client_sums", plan)
    return rows_of_several(spark, statements, **tables)


def _served_versions() -> pa.Table:
    """Each API version of the catalog with the releases that have it."""
    rows = []
    for key, api in apis().items():
        request = message(f"{api}Request")
        for version in request.all_versions():
            spans = request.releases_of(version)
            # If the last span has no end, the newest release still serves it.
            rows.append((key, version, spans[0].first, spans[-1].last, spans[-1].last is None))
    names = ("api_key", "api_version", "first_release", "last_release", "in_newest")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
