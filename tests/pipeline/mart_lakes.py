"""Lakes with recorded incidents and their marts, each made once for all tests that read it: of packets, or of the
brokers' request logs of the same minutes."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafkascope.lake.home import open_lake
from kafkascope.pipeline.ingestion.ingest import ingest
from kafkascope.pipeline.mart.build import build_marts
from tests.captures import HERE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES, LATER = ("clients", "quorum", "share", "streams"), ("frozen", "poison")
PACKETS, LOGS, LATER_PACKETS = "packets", "logs", "later packets"
_FILES = {
    PACKETS: (NAMES, "capture.pcap.xz"),
    LOGS: (NAMES, "request-*.log.xz"),
    LATER_PACKETS: (LATER, "capture.pcap.xz"),
}
_MADE: dict[str, str] = {}


def files_of(files: str) -> list[Path]:
    names, pattern = _FILES[files]
    return [path for name in names for path in sorted((HERE / name).glob(pattern))]


def incidents(spark: "SparkSession", factory: pytest.TempPathFactory, files: str) -> str:
    if files not in _MADE:
        lake = str(factory.mktemp("incidents") / "lake")
        done = ingest(spark, files_of(files), lake)
        assert not done.bad
        build_marts(spark, open_lake(lake))
        _MADE[files] = lake
    return _MADE[files]
