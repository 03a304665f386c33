"""Files beside a segment, cut at every byte and with every byte changed: a finding of their own kind or none, never a
traceback, and all batches are read."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkascope.cli.log.run import Command
from kafkascope.cli.output import json_text
from kafkascope.errors import InputError, KafkascopeError
from kafkascope.logs.directories import list_files
from kafkascope.logs.files import SMALL_FILES
from kafkascope.logs.reader import DamageEvent, LogReader
from kafkascope.logs.selection import Selection
from kafkascope.logs.small_files import read_small_file
from tests.logs.recorded import batches_of, items_of, offsets

KINDS = {
    "*.index": {"offset index"},
    "*.timeindex": {"time index"},
    "*.txnindex": {"transaction index"},
    "*.snapshot": {"producer snapshot"},
    "leader-epoch-checkpoint": {"small file", "leader epochs disagree"},
    "partition.metadata": {"small file"},
}


def damaged(data: bytes) -> Iterator[bytes]:
    """Cut before each byte, and each byte changed."""
    random_ = random.Random(len(data))
    for at in range(len(data)):
        yield data[:at]
        yield data[:at] + bytes([data[at] ^ random_.randrange(1, 256)]) + data[at + 1 :]


@pytest.fixture
def folder(tmp_path: Path, disks: Path) -> Path:
    """With aborted and open transactions."""
    return Path(shutil.copytree(disks / "node-1" / "ledger-0", tmp_path / "ledger-0"))


def findings(folder: Path) -> tuple[set[str], int]:
    command = Command((str(folder),), Selection(), records=False)
    return {finding.check for finding in command._findings()}, command._batches


@pytest.mark.parametrize("pattern", KINDS)
def test_a_damaged_file_beside_a_segment_hides_nothing(folder: Path, pattern: str) -> None:
    wanted = findings(folder)
    assert wanted[0] == set() and wanted[1] > 20
    path = max(folder.glob(pattern), key=lambda path: (0 < path.stat().st_size < 2_000, path.stat().st_size))
    kinds: set[str] = set()
    for content in damaged(path.read_bytes()):
        path.write_bytes(content)
        named, batches = findings(folder)
        assert batches == wanted[1] and named <= KINDS[pattern], content
        kinds |= named
        refused: list[KafkascopeError] = []
        list(LogReader((str(path),), on_bad=refused.append).events())
        assert all(isinstance(error, InputError) for error in refused)
    assert kinds & KINDS[pattern]


def test_a_damaged_small_file_is_refused_in_one_line(disks: Path, tmp_path: Path) -> None:
    """By its name and the line, if it isn't read as something else that it could be."""
    files = [file for file in list_files(str(disks / "node-1")) if file.kind in SMALL_FILES]
    by_name = {Path(file.path).name: file for file in files if 0 < file.size < 2_000}
    assert len(by_name) >= 6
    refused: list[tuple[Path, str]] = []
    for name, file in by_name.items():
        path = tmp_path / name
        for content in damaged(Path(file.path).read_bytes()):
            path.write_bytes(content)
            try:
                read_small_file(str(path), file.kind)
            except InputError as error:
                refused.append((path, str(error)))
    assert len(refused) > 200
    assert all(text.startswith(str(path)) and "\n" not in text for path, text in refused)


def test_a_snapshot_torn_at_any_byte_loses_only_its_batch(disks: Path, tmp_path: Path) -> None:
    snapshots = (disks / "node-1" / "__cluster_metadata-0").glob("*-*.checkpoint")
    source = min(snapshots, key=lambda path: path.stat().st_size)
    data, batches = source.read_bytes(), batches_of(source)
    path = tmp_path / source.name
    for end in range(batches[0].position + batches[0].size, len(data)):
        path.write_bytes(data[:end])
        whole = [batch.header.base_offset for batch in batches if batch.position + batch.size <= end]
        assert offsets(items_of(path)) == whole
        if end % 16 == 0:
            events = list(LogReader((str(path),), dumps=json_text).events())
            torn = [event for event in events if isinstance(event, DamageEvent)]
            is_between = any(batch.position == end for batch in batches)
            assert len(torn) == (not is_between) and all(not event.harmless or event.file.named for event in torn)
