"""Directories that a broker of 3.9.2 wrote are read as Kafka's own tool reads them."""

import os
from pathlib import Path

import pytest

from kafkascope.logs.directories import list_files
from kafkascope.logs.files import OF_BATCHES
from lab.disks import fill
from tests.logs.test_dump_log_segments import Judge, compared, decoded_topic, judge
from tests.support.cli import Cli

__all__ = ["judge"]
pytestmark = [
    pytest.mark.soak,
    pytest.mark.heavy,
    pytest.mark.skipif("KAFKASCOPE_SOAK" not in os.environ, reason="fills the disks of a broker: `make soak`"),
]


def test_reads_what_an_older_broker_wrote(cli: Cli, judge: Judge, tmp_path: Path) -> None:
    fill(tmp_path, "3.9.2", nodes=1)
    files = [file for file in list_files(str(tmp_path)) if file.kind in OF_BATCHES and file.left_alone is None]
    lines = 0
    for topic in {decoded_topic(file) for file in files}:
        group = [file for file in files if decoded_topic(file) == topic]
        theirs = judge.lines([file.path for file in group], topic)
        for file in group:
            lines += compared(theirs[file.path], file.path, file.topic)[0]
    assert lines > 1_000
    result = cli("log", "--check", str(tmp_path))
    assert (result.code, result.out) == (0, "")
