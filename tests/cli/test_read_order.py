"""Captures of one recording that were given in the wrong order: what is wrong is said, and only then."""

import struct
from pathlib import Path

import pytest

from tests.captures import capture
from tests.support.cli import Cli

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
    ("bounds", "said"),
    [
        (((700, 1_500), (0, 700)), True),
        (((600, 1_500), (0, 800)), True),
        (((0, 700), (700, 1_500)), False),
        (((0, 800), (600, 1_500)), False),
        (((10, 1_500), (0, 1_490)), False),
    ],
)
def test_older_file_behind_a_newer_one_is_named(
    bounds: tuple[tuple[int, int], ...], said: bool, tmp_path: Path, cli: Cli
) -> None:
    newer, older = parts(tmp_path, *bounds)
    done = cli("read", "--json", newer, older)
    told = f"{older} is older than {newer} in front of it: of one recording, give the oldest file first"
    assert (told in done.err) == said
