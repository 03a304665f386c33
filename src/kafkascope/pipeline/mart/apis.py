"""Computes the marts of latency, errors, throttling and client versions from exchanges: one DataFrame, which one job
writes."""

from typing import TYPE_CHECKING

import pyarrow as pa

from kafkascope.pipeline.mart.base.multi_writer import rows_of_several
from kafkascope.schema.catalog import apis, message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = {
    "exchanges": "exchange_id connection_id request_at latency_us long_poll api_key api api_version client_id"
    " broker_address client_software request_bytes response_bytes error_code error throttle_ms status",
}

# Significant bits of a latency that percentiles tell apart: one part in 16,384. Exact ones would have to sort every
# value, and those of `approx_percentile` differ with the order of the files.
_BITS = 14


def _exchange_with(aggregate: str, value: str, condition: str = "true") -> str:
    """The exchange with the largest or smallest value; ties go to the last or first id, so that the order of rows
    doesn't matter."""
    return f"{aggregate}_by(exchange_id, IF({condition}, struct({value}, exchange_id), NULL))"


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

_CLIENT_VERSIONS = f"""
SELECT e.client_software, e.client_id, e.api_key, e.api, e.api_version,
       count(*) AS calls,
       count(DISTINCT e.connection_id) AS connections,
       min(e.request_at) AS first_at,
       max(e.request_at) AS last_at,
       any_value(r.first_release) AS first_release,
       any_value(r.last_release) AS last_release,
       coalesce(any_value(r.in_newest), false) AS in_newest_release,
       {_exchange_with("max", "request_at", "request_at IS NOT NULL")} AS last_exchange_id
FROM {{exchanges}} AS e
LEFT JOIN {{served}} AS r ON e.api_key = r.api_key AND e.api_version = r.api_version
WHERE e.api_key IS NOT NULL
GROUP BY e.client_software, e.client_id, e.api_key, e.api, e.api_version
"""


_STATEMENTS = {
    "api_latency": _API_LATENCY,
    "api_errors": _API_ERRORS,
    "throttling": _THROTTLING,
    "client_versions": _CLIENT_VERSIONS,
}


def api_rows(spark: "SparkSession", exchanges: "DataFrame") -> "DataFrame":
    served = spark.createDataFrame(_served_versions())
    return rows_of_several(spark, _STATEMENTS, exchanges=exchanges, served=served)


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
