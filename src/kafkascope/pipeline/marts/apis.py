"""Exchanges in; latency, errors and throttling by API, and who speaks which version, out."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Exact percentiles keep every value of a group; these are within one part in a thousand of the rank.
_ACCURACY = 1000

API_LATENCY = f"""
SELECT date_trunc('MINUTE', request_at) AS minute, api, broker_address, long_poll,
       count(*) AS calls,
       count_if(status = 'unanswered') AS unanswered,
       count_if(error_code <> 0) AS errors,
       sum(request_bytes) AS request_bytes,
       sum(response_bytes) AS response_bytes,
       approx_percentile(latency_us, 0.5, {_ACCURACY}) AS p50_us,
       approx_percentile(latency_us, 0.95, {_ACCURACY}) AS p95_us,
       approx_percentile(latency_us, 0.99, {_ACCURACY}) AS p99_us,
       max(latency_us) AS max_us,
       max_by(exchange_id, latency_us) AS slowest_exchange_id
FROM {{exchanges}}
WHERE api IS NOT NULL AND request_at IS NOT NULL
GROUP BY ALL
"""

API_ERRORS = """
SELECT date_trunc('MINUTE', request_at) AS minute, api, error_code, error, client_id, broker_address,
       count(*) AS calls,
       min(request_at) AS first_at,
       max(request_at) AS last_at,
       min_by(exchange_id, request_at) AS first_exchange_id
FROM {exchanges}
WHERE error_code <> 0 AND request_at IS NOT NULL
GROUP BY ALL
"""

THROTTLING = """
SELECT date_trunc('MINUTE', request_at) AS minute, api, client_id, broker_address,
       count(*) AS calls,
       count_if(throttle_ms > 0) AS throttled,
       sum(throttle_ms) AS throttle_ms,
       max(throttle_ms) AS max_throttle_ms,
       max_by(exchange_id, throttle_ms) AS longest_exchange_id
FROM {exchanges}
WHERE throttle_ms IS NOT NULL AND request_at IS NOT NULL
GROUP BY minute, api, client_id, broker_address
HAVING max(throttle_ms) > 0
"""

CLIENT_VERSIONS = """
SELECT e.client_software, e.client_id, e.api_key, e.api, e.api_version,
       count(*) AS calls,
       count(DISTINCT e.connection_id) AS connections,
       min(e.request_at) AS first_at,
       max(e.request_at) AS last_at,
       any_value(r.first_release) AS first_release,
       any_value(r.last_release) AS last_release,
       coalesce(any_value(r.in_newest), false) AS in_newest_release,
       max_by(e.exchange_id, e.request_at) AS last_exchange_id
FROM {exchanges} AS e
LEFT JOIN {served} AS r ON e.api_key = r.api_key AND e.api_version = r.api_version
WHERE e.api_key IS NOT NULL
GROUP BY e.client_software, e.client_id, e.api_key, e.api, e.api_version
"""


def api_marts(spark: "SparkSession", exchanges: "DataFrame") -> dict[str, "DataFrame"]:
    """Mart to its rows."""
    return {
        "api_latency": spark.sql(API_LATENCY, exchanges=exchanges),
        "api_errors": spark.sql(API_ERRORS, exchanges=exchanges),
        "throttling": spark.sql(THROTTLING, exchanges=exchanges),
        "client_versions": spark.sql(CLIENT_VERSIONS, exchanges=exchanges, served=served_versions(spark)),
    }


def served_versions(spark: "SparkSession") -> "DataFrame":
    """Each API version of the catalog with the releases that have it."""
    from kafkascope.schema.catalog import apis, message

    rows = []
    for key, api in apis().items():
        known = message(f"{api}Request")
        for version in known.all_versions():
            spans = known.releases_of(version)
            # The last span without an end is still served by the newest release.
            rows.append((key, version, spans[0].first, spans[-1].last, spans[-1].last is None))
    return spark.createDataFrame(
        rows, "api_key int, api_version int, first_release string, last_release string, in_newest boolean"
    )
