"""Captures of one recording that were given in the wrong order: files are put in order, and a pipe is reported."""

import gzip
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.captures import capture
from tests.support.cli import Answer, Cli

HEADER, RECORD = 24, 16


def parts(folder: Path, *bounds: tuple[int, int]) -> list[str]:
    """Files with the packets from one number to another."""
    recorded = capture("share")
    starts = [HEADER]
    while starts[-1] < len(recorded):
        (size,) = struct.unpack_from("<I", recorded, starts[-1] + 8)
        starts.append(starts[-1] + RECORD + size)
    files = []
    for number, (first, last) in enumerate(bounds):
        files.append(folder / f"{number}.pcap")
        files[-1].write_bytes(recorded[:HEADER] + recorded[starts[first] : starts[last]])
    return list(map(str, files))


@pytest.mark.parametrize(
    ("bounds", "misplaced"),
    [
        (((700, 1_500), (0, 700)), True),
        (((600, 1_500), (0, 800)), True),
        (((0, 700), (700, 1_500)), False),
        (((0, 800), (600, 1_500)), False),
        (((10, 1_500), (0, 1_490)), False),
    ],
)
def test_older_pipe_behind_a_newer_file_is_named(
    bounds: tuple[tuple[int, int], ...], misplaced: bool, tmp_path: Path, cli: Cli
) -> None:
    newer, older = parts(tmp_path, *bounds)
    done = cli("read", "--json", newer, "-", stdin=Path(older).read_bytes())
    notice = f"standard input is older than {newer} before it: give the files of a recording oldest first"
    assert (notice in done.err) == misplaced


@pytest.mark.parametrize("packed", [False, True])
def test_files_of_a_glob_are_put_in_their_own_order(packed: bool, tmp_path: Path, cli: Cli) -> None:
    """A rotated recording as a shell sorts it: trace.pcap10 before trace.pcap2. Files that aren't captures stay where
    they are, and those that can't be read are reported."""
    size = 125
    files = parts(tmp_path, *((first, first + size) for first in range(0, 12 * size, size)))
    rotated = [tmp_path / f"trace.pcap{number or ''}" for number in range(len(files))]
    for file, name in zip(files, rotated, strict=True):
        content = Path(file).read_bytes()
        name.write_bytes(gzip.compress(content) if packed else content)
    (tmp_path / "trace.pcap11.txt").write_text("no recording\n")
    names = sorted(map(str, tmp_path.glob("trace.pcap*")))
    assert names.index(str(rotated[10])) < names.index(str(rotated[2]))
    (whole,) = parts(tmp_path, (0, 12 * size))
    expected = rows(cli("read", "--json", whole))
    done = cli("read", "--json", *names)
    assert rows(done) == expected
    assert done.code == 3 and "is older than" not in done.err
    assert "trace.pcap11.txt isn't a recording" in done.err


def rows(done: Answer) -> list[dict[str, Any]]:
    """By their ids, without where they are recorded."""
    lines = sorted(map(json.loads, done.out.splitlines()), key=lambda row: str(row["exchange_id"]))
    return [{name: value for name, value in row.items() if name not in ("capture_uri", "packet")} for row in lines]
