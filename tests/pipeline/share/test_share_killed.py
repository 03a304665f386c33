"""kill -9 of driver, executor and broker at twenty moments while Spark reads a million records of a share group into a
Delta table: none is lost, none is there twice. A source that acknowledges when its reader closes loses some. Part of
`make soak`."""

import os
import random
from pathlib import Path

import pytest

from lab.cluster import Cluster
from tests.pipeline.cluster import standalone
from tests.pipeline.share.kill_run import Kill, KilledQuery, Result, kills

SEED = int(os.environ.get("KAFKASCOPE_SEED", 0)) or random.randrange(1 << 32)
RECORDS, CONTROL_RECORDS, MOMENTS = 1_000_000, 200_000, 20
LOCAL_CLUSTER = "local-cluster[1,2,512]"
# Batches of a fiftieth of a million records.
SETTINGS = {
    "group.share.record.lock.duration.ms": "15000",
    "group.share.partition.max.record.locks": "5000",
    "group.share.max.partition.max.record.locks": "5000",
}
pytestmark = [
    pytest.mark.heavy,
    pytest.mark.soak,
    pytest.mark.skipif("KAFKASCOPE_SOAK" not in os.environ, reason="runs in make soak"),
]


def play(source: str, master: str, folder: Path, records: int, planned: list[Kill]) -> Result:
    with Cluster(settings=SETTINGS) as lab:
        result = KilledQuery(lab, folder, source, master).play(records, planned)
    print(f"\nseed {SEED}, {source} on {master}, {records:,} records: {result}")
    return result


def test_no_record_is_lost_or_doubled(tmp_path: Path) -> None:
    result = play("kafkascope-share", LOCAL_CLUSTER, tmp_path, RECORDS, kills(MOMENTS, SEED))
    assert (result.lost, result.doubled) == (0, 0)
    assert len(result.kills) == MOMENTS and result.starts > 1


def test_nor_on_a_standalone_cluster(tmp_path: Path) -> None:
    with standalone(tmp_path) as master:
        result = play("kafkascope-share", master, tmp_path, RECORDS, kills(MOMENTS, SEED + 1))
    assert (result.lost, result.doubled) == (0, 0)
    assert len(result.kills) == MOMENTS


def test_a_source_that_acknowledges_when_its_reader_closes_loses_some(tmp_path: Path) -> None:
    """So the tests above can fail."""
    planned = [Kill("driver", "read"), *kills(MOMENTS - 1, SEED)]
    result = play("control", LOCAL_CLUSTER, tmp_path, CONTROL_RECORDS, planned)
    assert result.lost > 0
