"""A file that breaks the process that reads it costs that file: it is named, has a row in quarantine, and the others
land."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkascope.lake.home import open_lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.write.heartbeat import INGESTS
from tests.pipeline.rows import lake_rows, read_rows
from tests.pipeline.test_ingest import capture, pieces
from tests.pipeline.test_killed import LOCAL, Driver, driver

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    with driver(LOCAL, tmp_path_factory.mktemp("broken") / "driver") as started:
        yield started


def quarantined(lake: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = dataset(open_lake(str(lake)), "quarantine").to_table().to_pylist()
    return [row for row in rows if row["kind"] == "broken"]


@pytest.mark.parametrize(
    ("plan", "breaks", "says"),
    [
        ("buckets", "SIGSEGV", "the process that read it crashed"),
        ("shuffle", "SIGKILL", "the process that read it crashed"),
        ("buckets", "IndexError", "reading it raised KernelError (part_run.py:"),
        ("shuffle", "MemoryError", "reading it raised MemoryError ("),
        ("buckets", "begins-SIGABRT", "the process that read it crashed"),
        ("follow", "KeyError", "reading it raised KeyError ("),
    ],
)
def test_a_file_that_breaks_its_reader_is_left_out_and_the_others_land(
    run: Driver, tmp_path: Path, plan: str, breaks: str, says: str
) -> None:
    folder = tmp_path / "recordings"
    folder.mkdir()
    whole = capture("share", tmp_path)
    good = pieces(whole, 3, seed=1)
    middle = folder / f"b-{breaks if '-' in breaks else f'breaks-{breaks}'}.pcap"
    first, last = (Path(shutil.move(path, folder / name)) for path, name in ((good[0], "a.pcap"), (good[2], "c.pcap")))
    shutil.move(good[1], middle)
    lake = tmp_path / "lake"
    files = [first, middle, last]
    options = {"follow": str(folder)} if plan == "follow" else {"plan": plan}
    report = run.ingest(lake, files, options=options)
    assert report is not None and list(report["bad"]) == [str(middle)], report
    why = report["bad"][str(middle)]
    assert why.startswith(f"{middle}: {says}") and "0102030405" not in why
    assert report["new"] == 2
    # As if it had never been there.
    assert lake_rows(str(lake)) == read_rows(first, last)
    (row,) = quarantined(lake)
    assert (row["capture_uri"], row["bytes"]) == (str(middle), middle.stat().st_size)
    assert says in row["detail"] and "0102030405" not in row["detail"]
    landed = dataset(open_lake(str(lake)), "captures").to_table().column("capture_uri").to_pylist()
    assert sorted(landed) == sorted(map(str, (first, last)))
    assert not [path.name for path in (lake / INGESTS).iterdir() if path.suffix != ".progress"]


def test_a_file_that_breaks_whoever_compares_its_times_is_left_out(run: Driver, tmp_path: Path) -> None:
    """Files that begin before what the lake has are read once more, for their times: not by the driver."""
    first, second, third = pieces(capture("share", tmp_path), 3, seed=1)
    broken = Path(shutil.move(second, tmp_path / "b-looks-SIGKILL.pcap"))
    lake = tmp_path / "lake"
    assert run.ingest(lake, [third]) == {"new": 1, "known": 0}
    report = run.ingest(lake, [first, broken])
    assert report is not None and report["new"] == 1
    assert report["bad"] == {str(broken): f"{broken}: the process that read it crashed or was killed by the system"}
    (row,) = quarantined(lake)
    assert row["capture_uri"] == str(broken)
    landed = dataset(open_lake(str(lake)), "captures").to_table().column("capture_uri").to_pylist()
    assert sorted(landed) == sorted(map(str, (first, third)))
