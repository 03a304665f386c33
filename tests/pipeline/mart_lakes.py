"""A lake with all recorded incidents and their marts, made once for all tests that read it: of packets, or of the
brokers' request logs of the same minutes."""

from typing import TYPE_CHECKING

import pytest

from kafkascope.lake.home import open_lake
from kafkascope.pipeline.ingestion.ingest import ingest
from kafkascope.pipeline.mart.build import build_marts
from tests.captures import HERE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKETS, LOGS = "*/capture.pcap.xz", "*/request-*.log.xz"
_MADE: dict[str, str] = {}


def incidents(spark: "SparkSession", factory: pytest.TempPathFactory, files: str) -> str:
    if files not in _MADE:
        lake = str(factory.mktemp("incidents") / "lake")
        done = ingest(spark, sorted(HERE.glob(files)), lake)
        assert not done.bad
        build_marts(spark, open_lake(lake))
        _MADE[files] = lake
    return _MADE[files]
