"""Lakes of recorded log directories with their marts, each made once for all tests that read it: the disks of three
nodes, and a run of which there is a capture too."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafkascope.pipeline.ingestion.ingest import ingest
from kafkascope.pipeline.mart.build import build_marts
from tests.logs.recorded import unpack_disks, unpack_truths
from tests.pipeline.log_secrets import first_segment, plant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MADE: dict[str, tuple[str, Path]] = {}


def disks_lake(spark: "SparkSession", factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The lake, and the disks that it is of. Their timestamps are those of the brokers, so whatever happens to the
    newest records is the same every time."""
    if "disks" not in _MADE:
        disks = unpack_disks(factory.mktemp("disks"))
        _MADE["disks"] = _made(spark, str(factory.mktemp("logs") / "lake"), disks), disks
    return _MADE["disks"]


def truths_lake(spark: "SparkSession", factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The lake, and the folder of both recordings. A node of another cluster has credentials on its disk,
    and removed a segment between two ingests."""
    if "truths" not in _MADE:
        truths = unpack_truths(factory.mktemp("truths"))
        planted = plant(truths)
        lake = str(factory.mktemp("logs") / "lake")
        ingest(spark, [planted], lake)
        first_segment(planted).unlink()
        _MADE["truths"] = _made(spark, lake, truths / "capture.pcap", truths / "node-1", planted), truths
    return _MADE["truths"]


def answers(truths: Path) -> dict[str, Any]:
    """What the broker said at the end of the run."""
    read: dict[str, Any] = json.loads((truths / "answers.json").read_text())
    return read


def _made(spark: "SparkSession", lake: str, *paths: Path) -> str:
    done = ingest(spark, paths, lake)
    assert not done.bad
    build_marts(spark, lake)
    return lake
