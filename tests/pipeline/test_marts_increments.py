"""Marts that are built a piece at a time are those that are built at once, row for row, whatever the order in which the
pieces come: the recorded incidents, each cut in ten."""

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from kafkascope.lake.active import active_files
from kafkascope.lake.home import Lake, open_lake
from kafkascope.lake.marts import MART_STATE
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.upkeep.retention import expire
from kafkascope.lake.write.commit import open_table
from kafkascope.pipeline.ingestion.ingest import ingest
from kafkascope.pipeline.mart import commits
from kafkascope.pipeline.mart.build import build_marts
from kafkascope.pipeline.mart.increments import checkpoints
from kafkascope.pipeline.mart.increments.plan import state_of
from tests.pipeline.mart_lakes import NAMES
from tests.pipeline.mart_rows import all_marts
from tests.pipeline.test_ingest import capture

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIECES, FEW = 10, 6
# Builds of one order: after each piece in `make soak`, where a build takes as long as anywhere.
BUILT_AFTER = range(1, PIECES + 1) if "KAFKASCOPE_SOAK" in os.environ else (5, 8, 10)
_HEADER = 24
_SOAK = "KAFKASCOPE_SOAK" in os.environ


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> list[list[Path]]:
    """Of one recording after the other, as they were made."""
    return cut_in_order(tmp_path_factory.mktemp("pieces"), NAMES, PIECES)


@pytest.fixture(scope="module")
def few_pieces(tmp_path_factory: pytest.TempPathFactory) -> list[list[Path]]:
    """Of two recordings."""
    return cut_in_order(tmp_path_factory.mktemp("few"), ("quorum", "share"), FEW)


def cut_in_order(folder: Path, names: Sequence[str], count: int) -> list[list[Path]]:
    recordings = sorted((capture(name, folder) for name in names), key=first_second)
    files = [file for recording in recordings for file in cut(recording, folder, count)]
    return [files[first : first + len(names)] for first in range(0, len(files), len(names))]


def first_second(path: Path) -> int:
    with path.open("rb") as file:
        return int.from_bytes(file.read(_HEADER + 4)[_HEADER:], "little")


def cut(path: Path, folder: Path, count: int) -> list[Path]:
    data, starts, at = path.read_bytes(), [], _HEADER
    while at < len(data):
        starts.append(at)
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    places = [starts[len(starts) * number // count] for number in range(count)]
    made = []
    for number, (first, last) in enumerate(pairwise([*places, len(data)])):
        made.append(folder / f"{path.stem}-{number}.pcap")
        made[-1].write_bytes(data[:_HEADER] + data[first:last])
    return made


def orders() -> dict[str, list[int]]:
    """One that has late pieces, and others that begin where the last ended; more in `make soak`."""
    in_order = list(range(PIECES))
    mixed = {f"seed {seed}": Random(seed).sample(in_order, PIECES) for seed in range(1, 9 if _SOAK else 2)}
    return {**mixed, **({"in order": in_order, "reversed": in_order[::-1]} if _SOAK else {})}


class Builds:
    """Builds with checkpoints right up to the end of what is recorded."""

    def __init__(self, spark: "SparkSession", lake: str) -> None:
        self.spark, self.lake = spark, lake
        self.lines: list[str] = []

    def read(self, files: list[Path]) -> None:
        assert not ingest(self.spark, files, self.lake).bad

    def build(self, *, rebuild: bool = False) -> None:
        build_marts(self.spark, self.home, rebuild=rebuild, report=self.lines.append)

    @property
    def home(self) -> Lake:
        return open_lake(self.lake)

    def check(self) -> None:
        """Against everything built at once."""
        by_pieces = all_marts(self.lake)
        self.build(rebuild=True)
        at_once = all_marts(self.lake)
        for name, rows in at_once.items():
            assert by_pieces[name] == rows, name


@pytest.fixture
def no_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "LAG_US", 0)


@pytest.mark.usefixtures("no_lag")
@pytest.mark.parametrize("order", orders())
def test_pieces_make_the_marts_of_the_whole(
    spark: "SparkSession", lake: str, pieces: list[list[Path]], order: str
) -> None:
    builds = Builds(spark, lake)
    read: list[Path] = []
    for done, number in enumerate(orders()[order], 1):
        read += pieces[number]
        if done in BUILT_AFTER:
            builds.read(read)
            builds.build()
            read.clear()
    assert order == "reversed" or any("beginning" not in line for line in builds.lines)
    # Every part could go on from its state.
    assert not [line for line in builds.lines if "its state can't be used" in line and "more is known" not in line]
    builds.check()


class Killed(BaseException):
    """As if the process had died."""


def kill_after(monkeypatch: pytest.MonkeyPatch, tables: int) -> None:
    """Of the next build, this many tables are committed."""
    left = [tables]

    def dies(commit: Callable[..., None]) -> Callable[..., None]:
        def counted(*arguments: Any) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            commit(*arguments)

        return counted

    for name in ("replace", "rewrite"):
        monkeypatch.setattr(commits, name, dies(getattr(commits, name)))


def damage_states(lake: Lake) -> int:
    """Every state of a walk or a sum becomes one of another form."""
    table = open_table(lake, MART_STATE)
    damaged = 0
    for file in active_files(table):
        path = lake.table(MART_STATE).child(*file.path.split("/"))
        rows = pq.read_table(path.path)
        if state_of(file) != ("manifest", 0):
            texts = [text.replace(":", ";", 2) for text in rows.column("state").to_pylist()]
            place = rows.schema.get_field_index("state")
            pq.write_table(rows.set_column(place, rows.schema.field(place), pa.array(texts)), path.path)
            damaged += len(texts)
    return damaged


@pytest.mark.usefixtures("no_lag")
def test_whatever_happens_to_a_lake_its_next_build_is_that_of_the_whole(
    spark: "SparkSession", lake: str, few_pieces: list[list[Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    builds, pieces = Builds(spark, lake), few_pieces
    builds.read([file for group in pieces[:3] for file in group])
    builds.build()
    before = all_marts(lake)
    reader = dataset(builds.home, "api_latency")
    seen = reader.to_table()
    # An ingest without a build, and a build that dies between two commits.
    builds.read(pieces[3])
    builds.read(pieces[4])
    with monkeypatch.context() as patch:
        kill_after(patch, 4)
        with pytest.raises(Killed):
            builds.build()
    assert reader.to_table().equals(seen)
    halfway = all_marts(lake)
    builds.build()
    after = all_marts(lake)
    for name in ("api_latency", "client_versions", "topics", "quorum_replicas", "share_deliveries"):
        assert halfway[name] in (before[name], after[name]), name
    # States that no build has left.
    builds.read(pieces[5])
    assert damage_states(builds.home)
    builds.lines.clear()
    builds.build()
    assert any("its state can't be used" in line for line in builds.lines) or "beginning" in builds.lines[0]
    builds.check()
    # Days that left.
    times = dataset(builds.home, "exchanges").to_table(columns=["request_at"]).column(0)
    assert expire(builds.home, pc.max(times).as_py().date() + timedelta(days=1))
    builds.lines.clear()
    builds.build()
    assert builds.lines[0].startswith("marts made from the beginning (rows left or entered")
