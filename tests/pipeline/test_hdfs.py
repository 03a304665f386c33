"""Log directories in a real HDFS, by its HTTP interface: the rows of the same files on a disk, read once."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from kafkascope.errors import InputError, NotFoundError
from kafkascope.lake.home import open_lake
from kafkascope.lake.log_tables import PRODUCER_SNAPSHOTS
from kafkascope.lake.place import place_of
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.pipeline.ingestion.ingest import ingest
from kafkascope.pipeline.ingestion.inputs import find_log_inputs
from lab.hdfs import hdfs, put
from tests.logs.recorded import batches_of, unpack_disks
from tests.pipeline.log_rows import lake_log_rows, segments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.soak,
    pytest.mark.heavy,
    pytest.mark.skipif("KAFKASCOPE_SOAK" not in os.environ, reason="downloads and starts HDFS: `make soak`"),
]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_disks(tmp_path_factory.mktemp("disks")) / "node-1"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, node: Path) -> Iterator[str]:
    """Its folder of node 1."""
    with hdfs(tmp_path_factory.mktemp("hdfs")) as uri:
        for path in sorted(node.rglob("*")):
            if path.is_file():
                put(f"{uri}/backup/node-1/{path.relative_to(node)}", path.read_bytes())
        yield f"{uri}/backup/node-1"


def _without_folder(rows: Any, folder: str) -> str:
    return repr(rows).replace(folder, "")


def test_rows_are_those_of_the_same_files_on_a_disk(
    spark: "SparkSession", store: str, node: Path, tmp_path: Path
) -> None:
    remote, local = str(tmp_path / "remote"), str(tmp_path / "local")
    done = ingest(spark, [store], remote)
    assert not done.bad and len(done.new) > 40
    ingest(spark, [node], local)
    rows, wanted = lake_log_rows(remote), lake_log_rows(local)
    assert rows.keys() == wanted.keys() and len(wanted) > 30
    for name in wanted:
        assert _without_folder(rows[name], store) == _without_folder(wanted[name], str(node)), name
    assert [log.digest() for log in find_log_inputs([store])] == [log.digest() for log in find_log_inputs([node])]
    by_lake = [dataset(open_lake(lake), PRODUCER_SNAPSHOTS).count_rows() for lake in (remote, local)]
    assert by_lake[0] == by_lake[1] > 5
    again = ingest(spark, [store], remote)
    assert again.new == [] and len(again.known) == len(done.new)

    newest = max((node / "packed-0").glob("*.log"))
    segment, content, last = f"{store}/packed-0/{newest.name}", newest.read_bytes(), batches_of(newest)[-1].header
    more = [Record(last.last_offset + 1, 1, b"k", b"v")]
    put(segment, content + encode_records([new_batch(more, partition_leader_epoch=last.partition_leader_epoch)]))
    grown = ingest(spark, [store], remote)
    assert grown.new == [segment]
    reads = [(row["start_position"], row["batches"]) for row in segments(remote) if row["capture_uri"] == segment]
    assert max(reads) == (len(content), 1)


def test_the_source_of_spark_reads_it(spark: "SparkSession", store: str, node: Path) -> None:
    def batches(folder: str) -> list[str]:
        rows = spark.read.format("kafkascope").option("table", "log_batches").load(folder)
        wanted = rows.where("topic = 'ledger' AND base_offset >= 20").select("partition", "base_offset", "crc_ok")
        return sorted(map(str, wanted.collect()))

    assert batches(store) == batches(str(node)) != []


def test_names_and_places_of_files(store: str, node: Path) -> None:
    inputs = find_log_inputs([store])
    wanted = find_log_inputs([node])
    assert [log.uri.replace(store, "") for log in inputs] == [log.uri.replace(str(node), "") for log in wanted]
    put(f"{store}/a folder/ümlaut %20+&.txt", b"x" * 10)
    place = place_of(store).child("a folder", "ümlaut %20+&.txt")
    assert place.info().size == 10 and place.read() == b"x" * 10
    with place.filesystem.open_input_file(place.path) as file:
        assert file.read_at(100, 4) == b"x" * 6 and file.read_at(5, 10) == b""


def test_what_is_not_there_is_one_line(store: str) -> None:
    with pytest.raises(NotFoundError, match=r"nowhere: no such file or directory$"):
        find_log_inputs([f"{store}/nowhere"])
    with pytest.raises(InputError, match="is only read"):
        place_of(f"{store}/note").write(b"x")
    with pytest.raises(InputError, match=r"^webhdfs://127\.0\.0\.1:1/kafka: connection refused$"):
        find_log_inputs(["webhdfs://127.0.0.1:1/kafka"])
