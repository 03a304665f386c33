"""The source reads a lake's tables: visible rows, only the files that a filter needs, only the chosen columns."""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, LessThan

from kafkascope.lake.home import open_lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.pipeline.source.lake_table import LakeReader
from kafkascope.pipeline.source.options import parse_options
from tests.lake.build import NOON, exchanges, half_land, land
from tests.pipeline.source.test_recordings import load, pushdown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafkascope.lake.home import Lake

DAY = timedelta(days=1)


@pytest.fixture
def home(lake: str) -> "Lake":
    """Three days, a file each, and an ingest that died."""
    from kafkascope.lake.home import make_lake

    made = make_lake(lake)
    for day in range(3):
        land(made, f"i{day}", exchanges([f"e{day}"], at=NOON + day * DAY))
    half_land(made, "i9", exchanges(["dead"]))
    return made


def ids(frame: object) -> list[str]:
    return sorted(row.exchange_id for row in frame.select("exchange_id").collect())  # type: ignore[attr-defined]


def test_rows_are_the_visible_ones_whether_filters_are_handed_over_or_not(spark: "SparkSession", home: "Lake") -> None:
    for enabled in (False, True):
        with pushdown(spark, enabled):
            frame = load(spark, home.uri)
            assert ids(frame) == ["e0", "e1", "e2"]
            assert ids(frame.where("request_at >= timestamp'2026-11-16 00:00:00'")) == ["e1", "e2"]
            assert ids(frame.where("date = date'2026-11-16'")) == ["e1"]
            assert frame.columns == dataset(home, "exchanges").schema.names
    assert load(spark, home.uri, table="share_deliveries").count() == 0
    assert load(spark, home.uri, table="captures", columns="ingest_id").columns == ["ingest_id"]


def test_a_filter_on_the_time_opens_only_the_files_of_its_days(home: "Lake") -> None:
    def opened(*filters: object) -> int:
        reader = LakeReader(open_lake(home.uri), parse_options({"path": home.uri}), dataset(home, "exchanges").schema)
        assert list(reader.pushFilters(list(filters))) == []  # type: ignore[arg-type]
        return sum(len(getattr(partition, "paths")) for partition in reader.partitions())  # noqa: B009

    assert opened() == 3
    assert opened(GreaterThanOrEqual(("request_at",), NOON + DAY)) == 2
    assert opened(GreaterThanOrEqual(("request_at",), NOON + DAY), LessThan(("request_at",), NOON + 2 * DAY)) == 1
    assert opened(EqualTo(("api",), "Fetch")) == 3


def test_a_lake_is_read_by_itself(spark: "SparkSession", home: "Lake", tmp_path: Path) -> None:
    (tmp_path / "a.pcap").touch()
    with pytest.raises(Exception, match="a lake is read by itself, without other paths"):
        load(spark, home.uri, tmp_path / "a.pcap")
    with pytest.raises(Exception, match="readStream goes with a folder of recordings"):
        spark.readStream.format("kafkascope").load(home.uri).writeStream.format("noop").start().awaitTermination(60)
    with pytest.raises(Exception, match="no table of the lake is called nothing"):
        load(spark, home.uri, table="nothing")
