"""kill -9 of driver, executor and broker while Spark reads a share group into a Delta table: no record is lost, none is
there twice. A source that acknowledges when its reader closes loses some under the same kills, so the test can fail.
`make soak` has a million records and twenty kills."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lab.cluster import Cluster
from tests.pipeline.cluster import standalone
from tests.pipeline.share.kill_query import CONTROL, SHARE
from tests.pipeline.share.kill_run import Kill, KilledQueries, Played, kills

if TYPE_CHECKING:
    from lab.cluster import Cluster as Lab

SEED = int(os.environ.get("KAFKASCOPE_SEED", 0)) or random.randrange(1 << 32)
# Each of the kills finds a batch under way.
SHORT, SHORT_LIMIT = {SHARE: 2_000, CONTROL: 2_000}, 500
WHOLE, WHOLE_LIMIT, MOMENTS = {SHARE: 1_000_000, CONTROL: 200_000}, 20_000, 20
CLUSTER_RECORDS, CLUSTER_LIMIT, CLUSTER_MOMENTS = {SHARE: 100_000}, 10_000, 6
LOCAL_CLUSTER = "local-cluster[1,4,512]"
SETTINGS = {
    "group.share.record.lock.duration.ms": "15000",
    # As many as a broker allows, so that batches are large.
    "group.share.partition.max.record.locks": "10000",
    "group.share.max.partition.max.record.locks": "10000",
}
pytestmark = pytest.mark.heavy


in_soak = pytest.mark.skipif("KAFKASCOPE_SOAK" not in os.environ, reason="runs in make soak")


@pytest.fixture
def say(capfd: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Prints at once: a run may take minutes."""

    def say(line: str) -> None:
        with capfd.disabled():
            print(line, flush=True)

    return say


def check(played: Played, planned: list[Kill], record_property: Callable[[str, object], None]) -> None:
    record_property("measured", f"Spark and a share group, seed {SEED}: {played}")
    share = played.results[SHARE]
    assert (share.lost, share.doubled) == (0, 0)
    assert list(played.kills) == planned


def test_no_record_is_lost_or_doubled(
    cluster: "Lab", tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Of the driver: the sink lacks the batch; the sink has it, and Spark's commit log lacks it."""
    planned = [Kill("executor", "reading"), Kill("driver", "read"), Kill("driver", "landed")]
    queries = KilledQueries(cluster, tmp_path, LOCAL_CLUSTER, SHORT, SHORT_LIMIT, lambda _: None)
    played = queries.play(planned)
    check(played, planned, record_property)
    assert played.results[CONTROL].lost > 0


@pytest.mark.soak
@in_soak
def test_nor_of_a_million_under_twenty_kills(
    tmp_path: Path, say: Callable[[str], None], record_property: Callable[[str, object], None]
) -> None:
    planned = kills(MOMENTS, SEED)
    with Cluster(settings=SETTINGS) as lab:
        played = KilledQueries(lab, tmp_path, LOCAL_CLUSTER, WHOLE, WHOLE_LIMIT, say).play(planned)
    check(played, planned, record_property)
    assert played.results[CONTROL].lost > 0


@pytest.mark.soak
@in_soak
def test_nor_on_a_standalone_cluster(
    tmp_path: Path, say: Callable[[str], None], record_property: Callable[[str, object], None]
) -> None:
    planned = kills(CLUSTER_MOMENTS, SEED + 1)
    with Cluster(settings=SETTINGS) as lab, standalone(tmp_path) as master:
        played = KilledQueries(lab, tmp_path, master, CLUSTER_RECORDS, CLUSTER_LIMIT, say).play(planned)
    check(played, planned, record_property)
