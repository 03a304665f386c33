"""Log directories as a source of Spark: the rows that an ingest makes, and no more bytes than a query needs."""

from collections.abc import Iterator
from pathlib import Path
from struct import pack
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, LessThan

from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from kafkascope.errors import UsageError
from kafkascope.lake.place import place_of
from kafkascope.logs.window import Window
from kafkascope.pipeline.disks.split_rows import SplitReader
from kafkascope.pipeline.source.logs import LogReader, SplitPartition, log_schema
from kafkascope.pipeline.source.options import parse_options
from kafkascope.times import moment_of
from tests.logs.recorded import unpack_disks
from tests.pipeline.log_rows import plain_row, read_log_rows, sorted_rows
from tests.pipeline.object_store import object_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_START_MS = 1_767_268_800_000
_BATCHES, _RECORDS = 1_000, 5


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_disks(tmp_path_factory.mktemp("disks"))


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions of a topic, each a segment of a megabyte with indexes as a broker writes them."""
    folder = tmp_path_factory.mktemp("kafka")
    (folder / "meta.properties").write_text("version=1\nnode.id=4\ncluster.id=c\n")
    for partition in range(2):
        _write(folder / f"orders-{partition}" / f"{0:020}.log")
    return folder


def _write(path: Path) -> None:
    path.parent.mkdir()
    data, offsets, times, indexed_at = bytearray(), b"", b"", 0
    for number in range(_BATCHES):
        first = number * _RECORDS
        records = [Record(first + at, _START_MS + first + at, b"key", b"v" * 200) for at in range(_RECORDS)]
        last = first + _RECORDS - 1
        if len(data) - indexed_at > 4_096:
            offsets += pack(">ii", last, len(data))
            times += pack(">qi", _START_MS + last, last)
            indexed_at = len(data)
        data += encode_records([new_batch(records)])
    path.write_bytes(data)
    path.with_suffix(".index").write_bytes(offsets)
    path.with_suffix(".timeindex").write_bytes(times)


@pytest.mark.parametrize(
    "table", ["log_batches", "control_records", "offset_commit", "partition_change_record", "share_update"]
)
def test_rows_are_those_of_the_reader(spark: "SparkSession", disks: Path, table: str) -> None:
    rows = spark.read.format("kafkascope").option("table", table).load(str(disks)).toArrow().to_pylist()
    wanted = read_log_rows(disks)[table]
    plain = sorted_rows(map(plain_row, rows))
    for row in plain if table == "control_records" else ():
        for column in ("value", "coordinator_epoch", "leader_id"):
            row.pop(column, None)
    assert plain == wanted
    assert len(plain) > 10


def test_a_query_in_sql_gets_the_rows_that_it_asks_for(spark: "SparkSession", indexed: Path) -> None:
    enabled = "spark.sql.python.filterPushdown.enabled"
    before = spark.conf.get(enabled)
    try:
        for pushed in ("true", "false"):
            spark.conf.set(enabled, pushed)
            batches = spark.read.format("kafkascope").option("table", "log_batches").load(str(indexed))
            chosen = batches.where("partition = 1 and base_offset >= 4000 and base_offset < 4100")
            rows = chosen.select("base_offset", "partition").sort("base_offset").collect()
            assert [tuple(row) for row in rows] == [(offset, 1) for offset in range(4_000, 4_100, _RECORDS)]
    finally:
        spark.conf.set(enabled, str(before))


class Counted:
    """Bytes that were read of segments, and batches that passed on to be decoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes = self.batches = 0
        fetch, of_batches = Window._fetch, SplitReader._of_batches

        def counted_fetch(window: Window, start: int, length: int) -> bytes:
            data = fetch(window, start, length)
            self.bytes += len(data) if window.path.endswith(".log") else 0
            return data

        def counted_batches(reader: SplitReader, window: Window, rows: Any) -> Iterator[Any]:
            self.batches += len(rows)
            return of_batches(reader, window, rows)

        monkeypatch.setattr(Window, "_fetch", counted_fetch)
        monkeypatch.setattr(SplitReader, "_of_batches", counted_batches)


def _read(path: object, table: str, filters: list[Filter], **options: str) -> list[dict[str, Any]]:
    parsed = parse_options({"path": str(path), "table": table} | options)
    reader = LogReader(parsed, log_schema(table, contents=parsed.contents))
    assert list(reader.pushFilters(filters)) == []
    rows: list[dict[str, Any]] = []
    for partition in reader.partitions():
        assert isinstance(partition, SplitPartition)
        for batch in reader.read(partition):
            rows += batch.to_pylist()
    return rows


@pytest.mark.parametrize("table", ["log_batches", "log_records"])
def test_filters_on_offsets_and_times_read_little_and_decode_less(
    indexed: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    offset = "offset" if table == "log_records" else "base_offset"
    moment = moment_of((_START_MS + 4_900) * 1000)
    size = (indexed / "orders-0" / f"{0:020}.log").stat().st_size
    cases: list[tuple[list[Filter], int, int]] = [
        ([], 2 * size, 2 * _BATCHES),
        ([EqualTo(("partition",), 1)], size, _BATCHES),
        ([EqualTo(("topic",), "other")], 0, 0),
        ([GreaterThanOrEqual((offset,), 4_000), LessThan((offset,), 4_100)], 2 * 240_000, 50),
        ([GreaterThan(("written_at",), moment)], 2 * 240_000, 50),
        ([EqualTo((offset,), 2_500)], 2 * 210_000, 4),
    ]
    whole = {tuple(sorted(row.items(), key=str)) for row in map(_flat, _read(indexed, table, [], keepPayloads="true"))}
    for filters, most_bytes, most_batches in cases:
        with monkeypatch.context() as patch:
            counted = Counted(patch)
            rows = [_flat(row) for row in _read(indexed, table, filters, keepPayloads="true")]
            # Checking where a part begins and ends reads a little more.
            assert counted.bytes <= most_bytes, filters
            assert counted.batches <= most_batches, filters
        assert {tuple(sorted(row.items(), key=str)) for row in rows} == {
            row for row in whole if all(_passes(condition, dict(row)) for condition in filters)
        }
        assert len(rows) > 0 or most_bytes == 0


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "headers"}


def _passes(condition: Any, row: dict[str, Any]) -> bool:
    value = row[condition.attribute[0]]
    compared = {EqualTo: value == condition.value, GreaterThan: None, GreaterThanOrEqual: None, LessThan: None}
    if type(condition) is EqualTo:
        return bool(compared[EqualTo])
    return bool(value > condition.value if type(condition) is GreaterThan else value >= condition.value
                if type(condition) is GreaterThanOrEqual else value < condition.value)  # fmt: skip


def test_an_index_that_does_not_fit_costs_no_row(tmp_path: Path) -> None:
    path = tmp_path / "orders-0" / f"{0:020}.log"
    _write(path)
    filters: list[Filter] = [GreaterThanOrEqual(("base_offset",), 2_000), LessThan(("base_offset",), 3_000)]
    wanted = [row["base_offset"] for row in _read(tmp_path, "log_batches", filters)]
    assert wanted == list(range(2_000, 3_000, _RECORDS))
    index = path.with_suffix(".index")
    data = index.read_bytes()
    shifted = b"".join(pack(">ii", 4 + 20 * at, 4_000 + 5_000 * at) for at in range(200))
    for content in (None, b"", data[: len(data) // 2 + 3], bytes(reversed(data)), shifted):
        index.unlink(missing_ok=True)
        if content is not None:
            index.write_bytes(content)
        assert [row["base_offset"] for row in _read(tmp_path, "log_batches", filters)] == wanted


def test_records_of_users_need_their_option(indexed: Path) -> None:
    with pytest.raises(UsageError, match="keepPayloads"):
        _read(indexed, "log_records", [])
    assert len(_read(indexed, "log_records", [], keepPayloads="true")) == 2 * _BATCHES * _RECORDS


def test_a_bucket_is_read_as_a_disk(indexed: Path) -> None:
    with object_store() as (bucket, _):
        for file in sorted(indexed.rglob("*.*")):
            place_of(f"{bucket}/kafka/{file.relative_to(indexed)}").write(file.read_bytes())
        filters: list[Filter] = [GreaterThanOrEqual(("base_offset",), 2_000), EqualTo(("partition",), 1)]
        rows = _read(f"{bucket}/kafka", "log_batches", filters)
        assert [row["base_offset"] for row in rows] == list(range(2_000, 5_000, _RECORDS))
        assert rows[0]["broker"] == 4
