"""`ingest --share-group` lands topics of frames: each record is in the lake once, whatever runs again."""

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafkascope import encode, pipeline
from kafkascope.cli.spark.share_ingest import ShareCommand
from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from kafkascope.errors import InputError, NotFoundError, ReachError, UsageError
from kafkascope.lake.home import open_lake
from kafkascope.lake.read.visible_rows import dataset
from tests.client.consumer_stage import Stage
from tests.pipeline.share.queries import PATIENCE, fresh, prepared, produced, staged, view
from tests.support.cli import is_one_line_error, process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lab.cluster import Cluster as Lab

pytestmark = pytest.mark.heavy
LINE = b"ShareFetchRequest:2 " + encode("ShareFetchRequest", 2, {"groupId": "orders", "memberId": "m1"}).hex().encode()


def test_frames_of_a_topic_are_in_the_lake_once(
    spark: "SparkSession",  # noqa: ARG001
    cluster: "Lab",
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic, group = fresh()
    body = encode("ShareFetchRequest", 2, {"groupId": "orders", "memberId": "m1"})
    records = [
        Record(0, 0, None, body, (("message", b"ShareFetchRequest"), ("version", b"2"))),
        Record(1, 0, None, b"ShareFetchRequest:2 " + body.hex().encode()),
        Record(2, 0, None, json.dumps({"message": "ShareFetchRequest", "version": 2, "hex": body.hex()}).encode()),
        Record(3, 0, None, body, (("api", b"ShareFetch"), ("direction", b"request"), ("version", b"2"))),
        Record(4, 0, None, b"no frame"),
    ]

    async def produce(on: Stage) -> None:
        await on.topic(topic)
        await on.group(group)
        await on.produce_data(topic, encode_records([new_batch(records)]))

    staged(cluster.bootstrap, produce)
    lake = tmp_path / "lake"
    assert ingest(cluster, lake, topic, group) == 3
    report = json.loads(capsys.readouterr().out)
    assert (report["frames"], report["quarantined"]) == (5, 1)
    assert report["rows"]["share_fetch_request"] == 4 and report["batches"] >= 1
    rows = table(lake, "share_fetch_request")
    assert len(rows) == len({row["exchange_id"] for row in rows}) == 4
    assert {(row["group_id"], row["member_id"], row["api_version"]) for row in rows} == {("orders", "m1", 2)}
    (bad,) = table(lake, "quarantine")
    assert bad["packet"] == 4 and bad["capture_uri"].startswith(f"share://{group}/{topic}/")
    assert view(cluster.bootstrap, group).lag == 0
    # Nothing new: nothing is added.
    assert ingest(cluster, lake, topic, group) == 0
    assert table(lake, "share_fetch_request") == rows
    # A batch of which Spark doesn't know that it is in the lake runs again: its ingest is in the lake already.
    (checkpoint,) = (lake / "_streams").iterdir()
    for file in (checkpoint / "commits").iterdir():
        file.unlink()
    assert ingest(cluster, lake, topic, group) == 3
    assert table(lake, "share_fetch_request") == rows
    assert [row["kind"] for row in table(lake, "captures")] == ["share"] * report["batches"]


def test_followed_until_ctrl_c_and_the_group_is_in_the_report(
    spark: "SparkSession",
    cluster: "Lab",
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic, group = prepared(cluster.bootstrap, [LINE])
    lake, log = tmp_path / "lake", cluster.nodes[1].request_log
    begin = log.stat().st_size

    def use() -> None:
        try:
            wait_for_rows(lake, 1)
            produced(cluster.bootstrap, topic, [LINE])
            wait_for_rows(lake, 2)
            while view(cluster.bootstrap, group).lag:
                pass
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    with ThreadPoolExecutor(1) as user:
        used = user.submit(use)
        with pytest.raises(KeyboardInterrupt):
            command(cluster.bootstrap, lake, topic, group).run(follow=True)
        used.result()
    summary = json.loads(capsys.readouterr().out)
    assert (summary["frames"], summary["quarantined"], summary["rows"]["share_fetch_request"]) == (2, 0, 2)
    assert len(table(lake, "share_fetch_request")) == 2
    # What brokers logged of the query itself, in the same lake.
    with log.open("rb") as lines:
        lines.seek(begin)
        (tmp_path / "request.log").write_bytes(lines.read())
    pipeline.ingest(spark, [str(tmp_path / "request.log")], str(lake))
    pipeline.marts(spark, str(lake))
    report = json.loads(process("report", str(lake), "--json", "--group", group).stdout)
    (ours,) = report["share_groups"]["shown"]
    assert (ours["group_id"], ours["acquired"], ours["outcomes"]) == (group, 2, {"accepted": 2})


def wait_for_rows(lake: Path, count: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        with suppress(InputError, NotFoundError):
            if len(table(lake, "share_fetch_request")) >= count:
                return
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_broker_that_is_gone_is_one_line(
    spark: "SparkSession",  # noqa: ARG001
    tmp_path: Path,
) -> None:
    for follow in (False, True):
        with pytest.raises(ReachError, match=r"127\.0\.0\.1:1: ") as raised:
            command("127.0.0.1:1", tmp_path / "lake", "topic", "group").run(follow=follow)
        assert "\n" not in str(raised.value)


def command(bootstrap: str, lake: Path, topic: str, group: str) -> ShareCommand:
    return ShareCommand(
        (topic,), str(lake), group, bootstrap, None, contents=False, pseudonymise=False, cores=2,
        thresholds=None, as_json=True,
    )  # fmt: skip


def ingest(cluster: "Lab", lake: Path, topic: str, group: str) -> int:
    return command(cluster.bootstrap, lake, topic, group).run(follow=False)


def table(lake: Path, name: str) -> list[dict[str, Any]]:
    return sorted(dataset(open_lake(lake), name).to_table().to_pylist(), key=repr)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--bootstrap", "h"], "--bootstrap needs --share-group"),
        (["--share-group", "g", "--plan", "shuffle"], "--port, --plan and --marts-every are for recordings"),
    ],
)
def test_wrong_use_is_one_line(tmp_path: Path, words: list[str], message: str) -> None:
    done = process("ingest", "topic", "--lake", str(tmp_path / "lake"), *words)
    assert done.returncode == UsageError.exit_code
    assert is_one_line_error(done.stderr.decode()) and message in done.stderr.decode()
