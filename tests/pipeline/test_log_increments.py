"""Each record of a log once in a lake, and never lost from it, whatever the brokers do with their segments between two
ingests."""

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from kafkascope.lake.home import open_lake
from kafkascope.lake.log_tables import LOG_RECORDS, PRODUCER_SNAPSHOTS
from kafkascope.lake.place import place_of
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.pipeline.ingestion.ingest import Options, ingest
from tests.logs.internal_topics import INTERNAL_TOPICS, mutated, packed, records_of, write_segment
from tests.pipeline.ingestion.without_spark import without_spark
from tests.pipeline.log_rows import lake_log_rows, read_log_rows, segments
from tests.pipeline.object_store import object_store

_SIZE = 10


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    without_spark(monkeypatch.setattr)


class Broker:
    """A data directory with one partition, and a lake that reads it."""

    def __init__(self, folder: Path) -> None:
        self.data, self.lake = folder / "data-1", str(folder / "lake")
        self.partition = self.data / "orders-0"
        self.partition.mkdir(parents=True)
        (self.data / "meta.properties").write_text("version=1\nnode.id=4\ncluster.id=c\n")
        (self.partition / "partition.metadata").write_text("version: 0\ntopic_id: _dT5jMt2SxmEw_KZHdLn7g\n")

    def segment(self, base: int) -> Path:
        return self.partition / f"{base:020}.log"

    def write(self, base: int, end: int, *, epoch: int = 0, but: Callable[[int], bool] = lambda _: False) -> None:
        self.segment(base).write_bytes(batches(range(base, end), epoch, but))

    def ingest(self) -> None:
        nobody: Any = None
        ingest(nobody, [self.data], self.lake, Options(contents=True))

    def rows(self) -> Counter[tuple[int, int]]:
        """Offsets and leader epochs."""
        rows = dataset(open_lake(self.lake), LOG_RECORDS).to_table(columns=["offset", "leader_epoch"]).to_pylist()
        return Counter((row["offset"], row["leader_epoch"]) for row in rows)

    def reads(self) -> list[tuple[int, int, int]]:
        """Where each ingest of each file began and ended, and how many batches were new."""
        return [(row["start_position"], row["end_position"], row["batches"]) for row in segments(self.lake)]


def batches(offsets: range, epoch: int = 0, but: Callable[[int], bool] = lambda _: False) -> bytes:
    """Ten records each; those that are left out have been compacted away."""
    made = []
    for first in offsets[::_SIZE]:
        kept = [Record(at, 1_000 + at, b"k%d" % at, b"v") for at in range(first, first + _SIZE) if not but(at)]
        if kept:
            made.append(new_batch(kept, base_offset=first, partition_leader_epoch=epoch))
    return encode_records(made)


def once(offsets: range, epoch: int = 0) -> Counter[tuple[int, int]]:
    return Counter((offset, epoch) for offset in offsets)


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    return Broker(tmp_path)


def test_a_segment_that_grew_is_read_from_where_it_ended(broker: Broker) -> None:
    data = batches(range(100))
    # The last batch is being written.
    broker.segment(0).write_bytes(data[:-7])
    broker.ingest()
    assert broker.rows() == once(range(90))
    broker.segment(0).write_bytes(data)
    broker.ingest()
    broker.write(0, 200)
    broker.ingest()
    assert broker.rows() == once(range(200))
    nine, ten, twenty = (len(batches(range(end))) for end in (90, 100, 200))
    assert sorted(broker.reads()) == [(0, nine, 9), (nine, ten, 1), (ten, twenty, 10)]
    assert not dataset(open_lake(broker.lake), "quarantine").count_rows()


def test_retention_at_the_source_takes_no_row_away(broker: Broker) -> None:
    broker.write(0, 100)
    broker.write(100, 150)
    broker.ingest()
    broker.segment(0).unlink()
    broker.write(100, 200)
    broker.ingest()
    assert broker.rows() == once(range(200))


def test_an_ingest_says_which_segments_are_left(broker: Broker) -> None:
    """Also if nothing else has changed; and the next one adds nothing."""
    for base in (0, 100, 200):
        broker.write(base, base + 100)
    broker.ingest()
    broker.segment(100).unlink()
    broker.ingest()
    broker.ingest()
    listed = [row["listed_segments"] for row in segments(broker.lake) if "listed_segments" in row]
    assert sorted(listed) == [[0, 100, 200], [0, 200]]
    assert broker.rows() == once(range(300))


def test_a_producer_snapshot_that_a_broker_would_throw_away_is_in_quarantine(broker: Broker) -> None:
    broker.write(0, 100)
    snapshot = broker.partition / f"{100:020}.snapshot"
    snapshot.write_bytes(b"\0\1" + bytes(8))
    broker.ingest()
    broker.ingest()
    (row,) = dataset(open_lake(broker.lake), "quarantine").to_table().to_pylist()
    assert (row["capture_uri"], row["kind"], row["bytes"]) == (str(snapshot), "producer snapshot", 10)
    assert "checksum" in row["detail"] and not open_lake(broker.lake).has(PRODUCER_SNAPSHOTS)


def test_compaction_at_the_source_brings_nothing_twice(broker: Broker) -> None:
    broker.write(0, 100)
    broker.write(100, 200)
    broker.ingest()
    # Two segments are one now, with half of the records.
    broker.write(0, 200, but=lambda offset: offset % 20 < 13)
    broker.segment(100).unlink()
    broker.write(200, 250)
    broker.ingest()
    assert broker.rows() == once(range(250))


def test_a_log_that_moved_to_another_disk_brings_nothing_twice(broker: Broker) -> None:
    broker.write(0, 100)
    broker.ingest()
    other = broker.data.with_name("data-2")
    other.mkdir()
    shutil.copy(broker.data / "meta.properties", other)
    shutil.move(broker.partition, other / "orders-0")
    broker.data, broker.partition = other, other / "orders-0"
    broker.write(0, 130)
    broker.ingest()
    assert broker.rows() == once(range(130))


def test_offsets_that_a_later_leader_reused_are_there_with_both_epochs(broker: Broker) -> None:
    broker.write(0, 100)
    broker.ingest()
    # The new batches are as long as the old ones, so that the next one is where the old ones ended.
    broker.segment(0).write_bytes(batches(range(70)) + batches(range(70, 100), epoch=1))
    broker.ingest()
    assert broker.rows() == once(range(100)) + once(range(70, 100), epoch=1)
    broker.segment(0).write_bytes(batches(range(40)) + batches(range(40, 120), epoch=2))
    broker.ingest()
    assert broker.rows() == once(range(100)) + once(range(70, 100), epoch=1) + once(range(40, 120), epoch=2)


def test_a_topic_that_was_created_again_is_another_log(broker: Broker) -> None:
    broker.write(0, 50)
    broker.ingest()
    (broker.partition / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    broker.write(0, 30)
    broker.ingest()
    assert broker.rows() == once(range(50)) + once(range(30))


def test_a_segment_in_a_bucket_that_grew_is_read_once(tmp_path: Path) -> None:
    nobody: Any = None
    with object_store() as (bucket, _):
        folder, lake = f"{bucket}/kafka", str(tmp_path / "lake")
        place_of(f"{folder}/meta.properties").write(b"version=1\nnode.id=4\n")
        for end in (100, 150):
            place_of(f"{folder}/orders-0/{0:020}.log").write(batches(range(end)))
            ingest(nobody, [folder], lake, Options(contents=True))
        rows = dataset(open_lake(lake), LOG_RECORDS).to_table(columns=["offset"]).to_pylist()
        assert sorted(row["offset"] for row in rows) == list(range(150))
        assert sorted(row["batches"] for row in segments(lake)) == [5, 10]


def test_records_that_no_kernel_reads_are_in_the_lake_once(tmp_path: Path) -> None:
    """Every type and version, whole and damaged: rows are those of the reader, the rest is in quarantine."""
    import random

    records = {topic: list(records_of(topic)) for topic in INTERNAL_TOPICS}
    lake = str(tmp_path / "lake")
    for topic, whole in records.items():
        write_segment(tmp_path / "disk", topic, packed(whole, "zstd", 20))
    nobody: Any = None
    ingest(nobody, [tmp_path / "disk"], lake)
    wanted = read_log_rows(tmp_path / "disk")
    in_lake = lake_log_rows(lake)
    assert {name: len(rows) for name, rows in in_lake.items()} == {name: len(rows) for name, rows in wanted.items()}
    for name, rows in in_lake.items():
        if name != "config_record":
            assert rows == wanted[name], name
    damaged = mutated(records["__consumer_offsets"], random.Random(5))
    write_segment(tmp_path / "damaged", "__consumer_offsets", packed(damaged, "none", 20))
    other = str(tmp_path / "other")
    ingest(nobody, [tmp_path / "damaged"], other)
    count = sum(len(rows) for name, rows in lake_log_rows(other).items() if name != "log_batches")
    assert count + dataset(open_lake(other), "quarantine").count_rows() >= len(damaged)
