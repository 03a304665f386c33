"""What `ingest` puts into a lake is what the reader reads, however the files were cut."""

import gzip
import lzma
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafkascope.errors import InputError
from kafkascope.lake.home import open_lake
from kafkascope.lake.place import Place
from kafkascope.lake.write.catalog_tables import CATALOG
from kafkascope.pipeline.ingestion.ingest import Options, ingest
from kafkascope.pipeline.ingestion.inputs import file_digest
from tests.pipeline.rows import lake_rows, read_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent.parent / "captures"
NAMES = ("share", "streams", "quorum", "clients")


def capture(name: str, folder: Path) -> Path:
    path = folder / f"{name}.pcap"
    path.write_bytes(lzma.decompress((HERE / name / "capture.pcap.xz").read_bytes()))
    return path


def pieces(path: Path, count: int, seed: int) -> list[Path]:
    """The capture cut between packets, as `tcpdump -C` would."""
    data = path.read_bytes()
    order = "little" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else "big"
    starts = []
    at = 24
    while at < len(data):
        starts.append(at)
        at += 16 + int.from_bytes(data[at + 8 : at + 12], order)  # type: ignore[arg-type]
    cuts = sorted(random.Random(seed).sample(starts[1:], count - 1))
    made = []
    for number, (first, last) in enumerate(zip([24, *cuts], [*cuts, len(data)], strict=True)):
        piece = path.parent / f"{path.stem}-{number:03}.pcap"
        piece.write_bytes(data[:24] + data[first:last])
        made.append(piece)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_those_of_the_reader(spark: "SparkSession", lake: str, tmp_path: Path, name: str) -> None:
    path = capture(name, tmp_path)
    done = ingest(spark, [path], lake)
    assert lake_rows(lake) == read_rows(path)
    assert done.new == [str(path)] and not done.bad
    assert set(CATALOG) <= set(open_lake(lake).tables())


def test_the_same_again_adds_nothing(spark: "SparkSession", lake: str, tmp_path: Path) -> None:
    path = capture("share", tmp_path)
    ingest(spark, [path], lake)
    before = lake_rows(lake)
    elsewhere = tmp_path / "renamed.pcap"
    path.rename(elsewhere)
    done = ingest(spark, [elsewhere], lake)
    assert done.known == [str(elsewhere)] and not done.new
    assert lake_rows(lake) == before


def test_a_file_that_cannot_be_opened_is_named_and_the_others_land(
    spark: "SparkSession", lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = capture("share", tmp_path)
    closed = tmp_path / "closed.pcap"
    closed.write_bytes(path.read_bytes())

    def digest_of(place: Place, size: int | None = None) -> str:
        if place.uri == str(closed):
            # As of another user's file; to root all are open.
            raise InputError(f"{place.uri}: no permission")
        return file_digest(place, size)

    monkeypatch.setattr("kafkascope.pipeline.ingestion.inputs.file_digest", digest_of)
    done = ingest(spark, [tmp_path], lake)
    assert (done.new, done.bad) == ([str(path)], {str(closed): f"{closed}: no permission"})
    assert lake_rows(lake) == read_rows(path)


@pytest.mark.parametrize("name", NAMES)
def test_twenty_pieces_in_any_order_are_one_recording(
    spark: "SparkSession", lake: str, tmp_path: Path, name: str
) -> None:
    path = capture(name, tmp_path)
    whole = read_rows(path)
    cut = pieces(path, 20, seed=7)
    random.Random(3).shuffle(cut)
    ingest(spark, cut, lake)
    assert lake_rows(lake) == whole


@pytest.mark.parametrize("name", NAMES)
def test_file_by_file_is_the_same_as_in_one_go(spark: "SparkSession", lake: str, tmp_path: Path, name: str) -> None:
    path = capture(name, tmp_path)
    whole = read_rows(path)
    for piece in pieces(path, 5, seed=11):
        ingest(spark, [piece], lake)
    assert lake_rows(lake) == whole


def test_buckets_have_the_rows_of_one_task(
    spark: "SparkSession", lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkascope.pipeline.ingestion.plan.SMALL_INPUT_BYTES", 0)
    path = capture("clients", tmp_path)
    ingest(spark, [path], lake, Options(tasks=3))
    assert lake_rows(lake) == read_rows(path)


def test_a_file_that_has_grown_adds_what_is_new(spark: "SparkSession", lake: str, tmp_path: Path) -> None:
    path = capture("share", tmp_path)
    whole = path.read_bytes()
    first = pieces(path, 2, seed=5)[0].read_bytes()
    path.write_bytes(first)
    ingest(spark, [path], lake)
    path.write_bytes(whole)
    ingest(spark, [path], lake)
    assert lake_rows(lake) == read_rows(path)


@pytest.mark.parametrize("cut", [0, 40], ids=["between lines", "within a line"])
def test_a_packed_log_that_has_grown_adds_what_is_new(
    spark: "SparkSession", lake: str, tmp_path: Path, cut: int
) -> None:
    """As `gzip >>` makes it grow, one stream behind the other."""
    content = lzma.decompress((HERE / "share" / "request-1.log.xz").read_bytes())
    place = content.index(b"\n", len(content) // 2) + 1 + cut
    path = tmp_path / "request.log.gz"
    path.write_bytes(gzip.compress(content[:place]))
    ingest(spark, [path], lake)
    path.write_bytes(path.read_bytes() + gzip.compress(content[place:]))
    ingest(spark, [path], lake)
    assert lake_rows(lake) == read_rows(path)


@pytest.mark.parametrize("name", NAMES)
def test_shuffled_segments_have_the_rows_of_buckets(
    spark: "SparkSession", lake: str, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkascope.pipeline.ingestion.plan.SMALL_INPUT_BYTES", 0)
    path = capture(name, tmp_path)
    cut = pieces(path, 4, seed=2)
    # The second call goes on from what the first left.
    ingest(spark, cut[:2], lake, Options(plan="shuffle", tasks=3))
    ingest(spark, cut[2:], lake, Options(plan="shuffle", tasks=2))
    assert lake_rows(lake) == read_rows(path)
