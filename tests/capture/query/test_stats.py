"""Percentiles out of buckets against the true ones."""

import numpy as np
import pyarrow as pa
import pytest

from kafkascope.capture.query.stats import Stats
from kafkascope.capture.query.tallies import PERCENTILES

COLUMNS = "api api_key client_id client_address broker_address connection_id error".split()


def columns(latency_us: list[int]) -> pa.RecordBatch:
    rows = len(latency_us)
    numbers = {name: pa.array([0] * rows) for name in ("request_bytes", "response_bytes", "error_code")}
    words = {name: pa.array(["x"] * rows) for name in COLUMNS if name != "api_key"}
    own = {
        "api_key": pa.array([0] * rows, pa.int16()),
        "long_poll": pa.array([False] * rows),
        "latency_us": pa.array(latency_us, pa.int64()),
        "status": pa.array(["answered"] * rows),
    }
    return pa.record_batch(numbers | words | own)


@pytest.mark.parametrize("most", [100, 1_000, 100_000, 10_000_000, 2**62])
def test_percentiles_are_within_one_percent_or_a_microsecond(most: int) -> None:
    random = np.random.default_rng(7)
    for _ in range(50):
        latencies = sorted(random.integers(1, most, 99).tolist())
        stats = Stats()
        stats.add(columns(latencies))
        (tally,) = stats.apis.summaries()
        for percent, percentile in zip(PERCENTILES, tally.percentiles, strict=True):
            true = latencies[int(np.ceil(99 * percent / 100)) - 1]
            assert percentile is not None and abs(percentile - true) <= max(1, true / 100), (true, percentile)
