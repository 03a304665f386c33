"""Files of one recording that come one by one: in a wrong order, or when the earlier ones are gone."""

import gzip
import shutil
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from kafkascope.lake.home import open_lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.pipeline.ingestion.ingest import Ingested, Options, ingest
from kafkascope.report.summaries.scope import Scope
from kafkascope.report.summaries.unread import unread_in
from tests.pipeline.rows import lake_rows, read_rows
from tests.pipeline.test_ingest import capture

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def cut_share(folder: Path, *places: int) -> list[Path]:
    """Cut before these packets; requests are under way at both of the first two."""
    path = capture("share", folder)
    data, starts, at = path.read_bytes(), [], 24
    while at < len(data):
        starts.append(at)
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    cuts = [24, *(starts[place] for place in places or (500, 900)), len(data)]
    made = []
    for number, (first, last) in enumerate(pairwise(cuts)):
        made.append(folder / f"{number}.pcap")
        made[-1].write_bytes(data[:24] + data[first:last])
    return made


def ids(rows: dict[str, list[dict[str, Any]]], table: str = "exchanges") -> list[str]:
    return sorted(row["exchange_id"] for row in rows.get(table, ()))


def one_by_one(spark: "SparkSession", files: list[Path], lake: str) -> list[Ingested]:
    return [ingest(spark, [file], lake) for file in files]


def test_a_ring_file_that_is_overwritten_and_grows_adds_no_row_twice(
    spark: "SparkSession", lake: str, tmp_path: Path
) -> None:
    first, begin, rest = cut_share(tmp_path, 900, 1000)
    ring = tmp_path / "ring0"
    done = []
    for content in (first.read_bytes(), begin.read_bytes(), begin.read_bytes() + rest.read_bytes()[24:]):
        ring.write_bytes(content)
        done.append(ingest(spark, [ring], lake))
    assert first.stat().st_size > begin.stat().st_size
    assert [ingested.new for ingested in done] == [[str(ring)]] * 3 and not any(ingested.apart for ingested in done)
    assert len(set(ids(lake_rows(lake)))) == len(ids(lake_rows(lake)))


@pytest.mark.parametrize("change", ["deleted", "overwritten"])
@pytest.mark.parametrize("options", [Options(), Options(pseudonymise=True), Options(plan="shuffle", tasks=2)])
def test_requests_without_an_answer_stay_when_their_file_is_gone(
    spark: "SparkSession", lake: str, tmp_path: Path, change: str, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKASCOPE_PSEUDONYM_KEY", str(tmp_path / "key"))
    first, second, third = cut_share(tmp_path)
    ingest(spark, [first], lake, options)
    before = lake_rows(lake)
    waiting = [row for row in before["exchanges"] if row["status"] == "unanswered"]
    assert waiting
    if change == "deleted":
        first.unlink()
    else:
        shutil.copy(third, first)
    ingest(spark, [second], lake, options)
    after = lake_rows(lake)
    assert all(row in after["exchanges"] for row in waiting)
    for table in before:
        assert set(ids(before, table)) <= set(ids(after, table)), table
        assert len(set(ids(after, table))) == len(ids(after, table)), table
    # And they are no longer pending: what comes later does not hide them.
    ingest(spark, [third], lake, options)
    assert set(ids(after)) <= set(ids(lake_rows(lake)))


def test_requests_that_are_read_again_stand_once(spark: "SparkSession", lake: str, tmp_path: Path) -> None:
    """Of two files before, one is gone: what the other has goes on."""
    first, second, third = cut_share(tmp_path)
    ingest(spark, [first], lake)
    first.unlink()
    ingest(spark, [second], lake)
    seen = ids(lake_rows(lake))
    ingest(spark, [third], lake)
    after = ids(lake_rows(lake))
    assert len(set(after)) == len(after)
    assert set(seen) <= set(after)


@pytest.mark.parametrize("order", [(2, 1, 0), (0, 2, 1), (1, 0, 2)])
def test_a_file_from_before_what_was_ingested_has_the_rows_of_a_new_lake(
    spark: "SparkSession", lake: str, tmp_path: Path, order: tuple[int, ...]
) -> None:
    cut = cut_share(tmp_path)
    done = one_by_one(spark, [cut[number] for number in order], lake)
    latest = -1
    for ingested, number in zip(done, order, strict=True):
        assert ingested.apart == ([str(cut[number])] if number < latest else [])
        if ingested.apart:
            assert ingested.exchanges == len(read_rows(cut[number])["exchanges"])
        latest = max(latest, number)
    rows = lake_rows(lake)["exchanges"]
    assert len(set(ids({"exchanges": rows}))) == len(rows)
    whole = read_rows(capture("share", tmp_path))["exchanges"]
    # A request and its answer on both sides of a seam are two rows.
    assert len(rows) >= len(whole)
    assert sum(row["status"] != "answered" for row in rows) < len(rows) / 4


def test_another_recording_that_is_further_on_does_not_matter(spark: "SparkSession", lake: str, tmp_path: Path) -> None:
    """Of other connections: one from later and one from before come between the parts."""
    first, second, third = cut_share(tmp_path)
    later, earlier = capture("streams", tmp_path), capture("quorum", tmp_path)
    done = one_by_one(spark, [first, later, second, earlier, third], lake)
    assert [ingested.apart for ingested in done] == [[]] * 5
    whole = [ids(read_rows(path)) for path in (capture("share", tmp_path), later, earlier)]
    assert ids(lake_rows(lake)) == sorted(name for names in whole for name in names)


def test_what_follows_goes_on_from_the_latest(spark: "SparkSession", lake: str, tmp_path: Path) -> None:
    """Parts 0 and 2 go on from what is theirs, though 1 came between: 3 is joined to 2."""
    cut = cut_share(tmp_path, 500, 900, 1200)
    done = one_by_one(spark, [cut[0], cut[2], cut[1], cut[3]], lake)
    assert [bool(ingested.apart) for ingested in done] == [False, False, True, False]
    rows = lake_rows(lake)["exchanges"]
    assert len(set(ids({"exchanges": rows}))) == len(rows)
    before = {row["exchange_id"] for row in read_rows(cut[1])["exchanges"]}
    assert before <= set(ids({"exchanges": rows}))


def test_the_same_time_seen_elsewhere_is_no_other_recording(spark: "SparkSession", lake: str, tmp_path: Path) -> None:
    cut = cut_share(tmp_path)
    one_by_one(spark, cut, lake)
    before = lake_rows(lake)
    # The same packets in other bytes: as a second interface would have them.
    data = bytearray(cut[1].read_bytes())
    data[16:20] = (262_143).to_bytes(4, "little")
    other = tmp_path / "other.pcap"
    other.write_bytes(data)
    done = ingest(spark, [other], lake)
    assert done.new and not done.apart
    assert lake_rows(lake) == before


def grow(spark: "SparkSession", lake: str, folder: Path) -> Path:
    """`share.pcap` in three ingests, each time but the last with half a packet at its end."""
    parts = cut_share(folder)
    path = capture("share", folder)
    whole, size = path.read_bytes(), 24
    for part in parts:
        size += part.stat().st_size - 24
        path.write_bytes(whole[: size + 20])
        ingest(spark, [path], lake)
    return path


def test_a_file_that_came_in_three_ingests_is_reported_as_one(spark: "SparkSession", lake: str, tmp_path: Path) -> None:
    path = grow(spark, lake, tmp_path)
    ingest(spark, [path], other := f"{lake}-at-once")
    unread, whole = (unread_in(open_lake(where), Scope()) for where in (lake, other))
    assert unread.recordings == 1
    assert unread.total == whole.total
    assert unread.protocols == whole.protocols
    assert unread.quarantine == ()
    home = open_lake(lake)
    counted = sum(row["exchanges"] for row in dataset(home, "captures").to_table().to_pylist())
    assert counted == dataset(home, "exchanges").count_rows() == whole.total.exchanges


@pytest.mark.parametrize("options", [Options(), Options(plan="shuffle", tasks=2)])
def test_a_connection_has_one_row_however_the_recording_was_cut(
    spark: "SparkSession", lake: str, tmp_path: Path, options: Options
) -> None:
    ingest(spark, [capture("share", tmp_path)], other := f"{lake}-at-once")
    expected = DeltaTable(f"{other}/connections").to_pyarrow_table().drop_columns(["ingest_id"]).to_pylist()
    for file in cut_share(tmp_path):
        ingest(spark, [file], lake, options)
        rows = DeltaTable(f"{lake}/connections").to_pyarrow_table().drop_columns(["ingest_id"]).to_pylist()
        assert len({row["connection_id"] for row in rows}) == len(rows) > 0
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))


def test_a_connection_whose_state_is_lost_keeps_its_row(spark: "SparkSession", lake: str, tmp_path: Path) -> None:
    first, second, _ = cut_share(tmp_path)
    ingest(spark, [first], lake)
    home = open_lake(lake)
    before = dataset(home, "connections").to_table().column("connection_id").to_pylist()
    (file,) = (Path(lake) / "unfinished").glob("*.parquet")
    rows = pq.read_table(file)
    broken = pa.array(["{}"] * len(rows), pa.string())
    pq.write_table(rows.set_column(rows.schema.get_field_index("state"), "state", broken), file)
    ingest(spark, [second], lake)
    after = dataset(home, "connections").to_table().column("connection_id").to_pylist()
    assert before and set(before) <= set(after)


def test_files_in_three_ingests_count_every_exchange_once(spark: "SparkSession", lake: str, tmp_path: Path) -> None:
    one_by_one(spark, cut_share(tmp_path), lake)
    home = open_lake(lake)
    counted = sum(row["exchanges"] for row in dataset(home, "captures").to_table().to_pylist())
    assert counted == dataset(home, "exchanges").count_rows()


def test_that_compressed_data_ended_early_goes_once_it_is_whole(
    spark: "SparkSession", lake: str, tmp_path: Path
) -> None:
    packed = gzip.compress(capture("share", tmp_path).read_bytes())
    path = tmp_path / "share.pcap.gz"
    for content, expected in ((packed[: len(packed) // 2], ["compression"]), (packed, [])):
        path.write_bytes(content)
        ingest(spark, [path], lake)
        home = open_lake(lake)
        kinds = dataset(home, "quarantine").to_table(columns=["kind"]).column(0).to_pylist()
        assert [kind for kind in kinds if kind == "compression"] == expected


def test_that_a_file_was_cut_off_stays_until_the_file_goes_on(spark: "SparkSession", lake: str, tmp_path: Path) -> None:
    first, second, third = cut_share(tmp_path)
    whole = first.read_bytes()
    first.write_bytes(whole[:-20])

    def cut_files() -> list[str]:
        rows = dataset(open_lake(lake), "quarantine").to_table().to_pylist()
        return [row["capture_uri"] for row in rows if row["kind"] == "cut"]

    ingest(spark, [first], lake)
    assert cut_files() == [str(first)]
    ingest(spark, [second], lake)
    assert cut_files() == [str(first)]
    ingest(spark, [third], lake)
    assert cut_files() == [str(first)]
