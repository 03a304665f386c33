"""A recording in 31 files has the frames, bytes and losses of the same recording in one, however it comes; loss is what
is lost in the end."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafkascope.codec.frame import encode_frame
from kafkascope.lake.home import Lake, make_lake, open_lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.upkeep.compact import compact
from kafkascope.pipeline.ingestion import ingest as module
from kafkascope.pipeline.ingestion.follow import start
from kafkascope.pipeline.ingestion.ingest import Ingested, Options, ingest
from kafkascope.pipeline.ingestion.task import Task, TaskResult, run
from kafkascope.pipeline.mart.findings import write_findings
from tests.pipeline.rows import lake_rows, read_rows
from tests.pipeline.test_file_accounts import damaged
from tests.pipeline.test_ingest import capture, pieces
from tests.pipeline.test_streaming import until
from tests.support.other_tools import arrow_rows, optimize
from tests.support.packet_build import Talk, pcap

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = 31
LOST = ("lost_bytes", "lost_places")
COUNTS = (*LOST, "packets", "frames", "exchanges", "tls_bytes", "tcp_bytes")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tasks in this process: 31 times Spark's jobs take a minute."""

    def on_workers(_: Any, __: int, items: list[Any], work: Any) -> list[Any]:
        return [work(item) for item in items]

    def run_here(_: Any, tasks: list[Task], *, shuffle: bool = False) -> list[TaskResult]:
        assert not shuffle
        return [run(task) for task in tasks]

    monkeypatch.setattr(module, "check_version", lambda _: None)
    monkeypatch.setattr(module, "on_workers", on_workers)
    monkeypatch.setattr(module, "run_on_spark", run_here)


def ingest_here(files: list[Path], lake: str) -> Ingested:
    return ingest(None, files, lake, Options(tasks=1))  # type: ignore[arg-type]


def lost(lake: Lake) -> list[tuple[str, int, int]]:
    """Of every file that lacks something, as a reader that isn't ours has it."""
    rows = arrow_rows(lake.table("captures").uri).to_pylist()
    return sorted((Path(row["capture_uri"]).name, *(row[name] for name in LOST)) for row in rows if row["lost_places"])


def total(lake: Lake) -> tuple[int, int]:
    losses = lost(lake)
    return sum(size for _, size, _ in losses), sum(places for _, _, places in losses)


def counted(lake: Lake) -> dict[str, int]:
    rows = arrow_rows(lake.table("captures").uri).to_pylist()
    return {name: sum(row[name] for row in rows) for name in COUNTS}


def findings(lake: Lake) -> list[tuple[str, str]]:
    """Of the recording itself."""
    write_findings(lake, {}, "mart-test")
    rows = dataset(lake, "findings").to_table().to_pylist()
    return sorted((row["rule"], row["severity"]) for row in rows if row["rule"].startswith("recording_"))


def in_several_packets(folder: Path) -> Path:
    """Responses of three packets each, of which one packet was lost: nearly every cut between packets is one inside a
    frame."""
    talk = Talk().open()
    topics = [{"name": f"topic-{number}", "partitions": []} for number in range(100)]
    for number in range(80):
        talk.say(0, encode_frame("MetadataRequest", 1, {}, {"correlationId": number, "clientId": "app"}))
        frame = encode_frame("MetadataResponse", 1, {"topics": topics}, {"correlationId": number})
        for at in range(0, len(frame), 700):
            talk.say(1, frame[at : at + 700])
    talk.close()
    path = folder / "several.pcap"
    path.write_bytes(pcap([packet for number, packet in enumerate(talk.packets) if number != 101]))
    return path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("recording", ["clients", "in several packets"])
def test_loss_of_files_that_come_one_by_one_is_that_of_the_recording(tmp_path: Path, recording: str) -> None:
    path = capture("clients", tmp_path) if recording == "clients" else in_several_packets(tmp_path)
    whole, once, one_by_one = (make_lake(tmp_path / lake) for lake in ("whole", "once", "one_by_one"))
    ingest_here([path], whole.uri)
    assert total(whole)[1] > 0
    cut = pieces(path, FILES, seed=9)
    ingest_here(cut, once.uri)
    waited = 0
    for number, piece in enumerate(cut):
        done = ingest_here([piece], one_by_one.uri)
        waited += sum(account.pending_bytes for account in done.accounts.values())
        if number % 10 == 0:
            # Rows of `captures` are corrected wherever they are.
            optimize(one_by_one.table("captures").uri)
    if recording != "clients":
        assert waited > total(whole)[0]
    assert total(once) == total(one_by_one) == total(whole)
    if recording == "clients":
        # The other one's loss is found out three files after the frame that it is of.
        assert lost(once) == lost(one_by_one)
    assert counted(once) == counted(one_by_one) == counted(whole)
    assert findings(once) == findings(one_by_one) == findings(whole) != []
    assert lake_rows(one_by_one.uri) == read_rows(path)


@pytest.mark.usefixtures("here")
def test_what_no_later_file_completes_stays_lost(tmp_path: Path) -> None:
    """Of three files the second lacks packets, and of another recording nothing follows the first."""
    cut = pieces(capture("clients", tmp_path), 3, seed=9)
    damaged(cut[1])
    once, one_by_one = (make_lake(tmp_path / lake) for lake in ("once", "one_by_one"))
    ingest_here(cut, once.uri)
    for piece in cut:
        ingest_here([piece], one_by_one.uri)
    assert total(one_by_one) == total(once)
    assert total(once)[1] > 1
    first, _ = pieces(capture("quorum", tmp_path), 2, seed=3)
    alone = make_lake(tmp_path / "alone")
    done = ingest_here([first], alone.uri)
    compact(alone)
    assert sum(account.lost_bytes for account in done.accounts.values()) == total(alone)[0]


def test_loss_under_follow_is_that_of_the_recording(spark: "SparkSession", lake: str, tmp_path: Path) -> None:
    path = capture("clients", tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    ingest(spark, [path], whole := f"{lake}-whole")
    cut = pieces(path, FILES, seed=9)
    batches: list[Ingested] = []
    query = start(spark, (str(folder),), make_lake(lake), Options(), batches.append, quiet=0)
    try:
        for number in (0, 16):
            for piece in cut[number : number + 16]:
                piece.rename(folder / piece.name)
            until(lambda: query.isActive and sum(len(batch.new) for batch in batches) == min(number + 16, FILES))  # noqa: B023
    finally:
        query.stop()
    assert total(open_lake(lake)) == total(open_lake(whole))
    assert len(batches) > 1
