"""What is read of a folder, and how files are named."""

import gzip
import io
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafkascope.errors import InputError, NotFoundError, UsageError
from kafkascope.lake.home import make_lake
from kafkascope.lake.place import place_of
from kafkascope.pipeline.ingestion.inputs import InputFile, _RemoteStream, find_inputs
from kafkascope.pipeline.ingestion.plain_frames import PlainFrames, is_frames
from kafkascope.pipeline.ingestion.survey import BAD_FILE, survey_file
from tests.captures import capture


def names(*uris: str | Path) -> list[str]:
    return [os.path.basename(file.uri) for file in find_inputs(uris)]


def lake_with_a_file(folder: Path) -> Path:
    make_lake(folder)
    (folder / "exchanges").mkdir()
    (folder / "exchanges" / "part.parquet").write_bytes(b"PAR1")
    return folder


def test_a_lake_within_a_folder_is_no_recording(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(b"a")
    lake_with_a_file(tmp_path / "lake")
    lake_with_a_file(tmp_path / "below" / "other")
    (tmp_path / "below" / "b.pcap").write_bytes(b"b")
    assert names(tmp_path) == ["a.pcap", "b.pcap"]
    assert names(f"{tmp_path}/*/*.pcap") == ["b.pcap"]
    with pytest.raises(NotFoundError, match="no files match"):
        find_inputs([f"{tmp_path}/*/*/*.parquet"])


def test_a_lake_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="this is a lake, not a recording"):
        find_inputs([lake_with_a_file(tmp_path / "lake")])


def test_links_in_circles_end_and_a_file_is_found_once(tmp_path: Path) -> None:
    chosen, elsewhere = tmp_path / "asked", tmp_path / "elsewhere"
    below = chosen / "a" / "b"
    below.mkdir(parents=True)
    (below / "x.pcap").write_bytes(b"x")
    elsewhere.mkdir()
    (elsewhere / "y.pcap").write_bytes(b"y")
    for folder in (chosen, chosen / "a", below):
        for name, to in (("one", chosen), ("two", ".."), ("three", "."), ("itself", "itself"), ("out", elsewhere)):
            (folder / name).symlink_to(to)
    # Without a bound each circle goes around forty times, and each time through all the others.
    assert sorted(names(chosen)) == ["x.pcap", "y.pcap"]
    assert names(f"{chosen}/a/b/*.pcap") == ["x.pcap"]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pcap")
    (tmp_path / "a.pcap").write_bytes(b"a")
    assert names(tmp_path) == ["a.pcap"]
    with pytest.raises(InputError, match="not a file"):
        find_inputs([tmp_path / "pipe.pcap"])


def test_a_parquet_file_without_frames_is_no_recording(tmp_path: Path) -> None:
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"message": ["a"], "api_version": [1], "bytes": [7]}), other)
    assert not is_frames(place_of(other))
    (input_file,) = find_inputs([other])
    surveyed = survey_file(input_file, sample=0)
    assert surveyed.kind == BAD_FILE and surveyed.error


def test_a_uri_of_a_file_is_decoded(tmp_path: Path) -> None:
    for name in ("sp ace.pcap", "a%20b.pcap", "ü#?.pcap"):
        path = tmp_path / name
        path.write_bytes(b"x")
        assert place_of(path.as_uri()).path == str(path)
        assert place_of(path.as_uri().replace("file://", "file://localhost")).path == str(path)
        assert names(path.as_uri()) == names(path) == [name]


@pytest.mark.parametrize("uri", ["", "file://", "file://elsewhere/a.pcap", "night/\udcff.pcap"])
def test_a_name_of_nothing_is_refused(uri: str) -> None:
    with pytest.raises(UsageError):
        place_of(uri)


def test_a_name_in_a_folder_that_is_no_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(b"a")
    try:
        (tmp_path / "\udcff.pcap").write_bytes(b"b")
    except OSError:
        pytest.skip("this file system takes no such name")
    with pytest.raises(InputError, match="isn't UTF-8"):
        find_inputs([tmp_path])


@pytest.mark.parametrize("first", ["ApiVersionsRequest:0", "ApiVersionsRequest:0 ", "MetadataRequest:0 zz"])
def test_a_body_may_be_empty_and_an_odd_one_hides_no_others(tmp_path: Path, first: str) -> None:
    path = tmp_path / "frames.txt"
    path.write_text(f"{first}\nApiVersionsRequest:0\nMetadataRequest:0 zz\nMetadataRequest:x 00\n")
    assert is_frames(place_of(path))
    (rows,) = PlainFrames(place_of(path)).portions()
    assert rows[1:3] == [(1, "ApiVersionsRequest", 0, b""), (2, "bytes must be hex or base64")]
    assert rows[3] == (3, "message or api is missing")


@pytest.mark.parametrize("text", ["Note:1", "Note:1 two words", "Metadata: 00"])
def test_other_text_is_no_frames(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(f"{text}\n")
    assert not is_frames(place_of(path))


@pytest.mark.parametrize("suffix", [".pcap", ".bin"], ids=["plain", "packed"])
def test_an_object_is_surveyed_like_a_file(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stream has no positions of its own."""
    path = tmp_path / f"share{suffix}"
    path.write_bytes(capture("share") if suffix == ".pcap" else gzip.compress(capture("share")))
    file = InputFile(str(path), path.stat().st_size, "")
    expected = survey_file(file, sample=6)
    assert expected.kind == "capture" and expected.bytes == len(capture("share")) and expected.flows

    def open_object(uri: str) -> Any:
        return io.BufferedReader(_RemoteStream(place_of(uri)), 4 << 20)

    monkeypatch.setattr("kafkascope.pipeline.ingestion.survey.open_input", open_object)
    surveyed = survey_file(file, sample=6)
    assert (surveyed.kind, surveyed.broken, surveyed.first_ns) == ("capture", None, expected.first_ns)
    # A packed object comes in smaller batches, so its size is estimated from less of it.
    assert surveyed.bytes > 0 and (surveyed == expected or suffix == ".bin")
