"""`log --check`: nothing to say about what brokers wrote, and a finding of the right kind for each kind of damage."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from kafkascope.logs.check.finding import SEVERITY_OF
from tests.support.cli import Cli

SEGMENT = f"{0:020}"


def checks_of(cli: Cli, *paths: Path) -> list[str]:
    out = cli("log", "--check", "--json", *map(str, paths)).out
    return sorted({json.loads(line)["check"] for line in out.splitlines()})


@pytest.fixture
def folder(tmp_path: Path, disks: Path) -> Path:
    """A partition to damage: three segments with indexes."""
    return Path(shutil.copytree(disks / "node-1" / "packed-0", tmp_path / "packed-0"))


@pytest.fixture
def ledger(tmp_path: Path, disks: Path) -> Path:
    return Path(shutil.copytree(disks / "node-1" / "ledger-0", tmp_path / "ledger-0"))


def test_disks_of_running_and_killed_brokers_have_no_findings(cli: Cli, disks: Path) -> None:
    result = cli("log", "--check", str(disks))
    assert (result.code, result.out) == (0, "")


def _flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def _append(path: Path, data: bytes) -> None:
    path.write_bytes(path.read_bytes() + data)


def _batch(offset: int, **header: int) -> bytes:
    batch = new_batch([Record(offset, 1_767_268_800_000, b"k", b"v")])
    return encode_records([replace(batch, **header)])  # type: ignore[arg-type]


def _segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "crc": lambda folder: _flip(_segments(folder)[0], 70),
    "torn tail": lambda folder: _segments(folder)[0].write_bytes(_segments(folder)[0].read_bytes()[:-3]),
    "unfinished tail": lambda folder: _append(_segments(folder)[-1], _batch(10_000)[:-3]),
    "zeros": lambda folder: _append(_segments(folder)[-1], bytes(500)),
    "bad header": lambda folder: _segments(folder)[0].write_bytes(b"x" * 40 + _segments(folder)[0].read_bytes()),
    "offset goes back": lambda folder: _append(_segments(folder)[-1], _batch(1)),
    "segments overlap": lambda folder: (folder / f"{100_000:020}.log").write_bytes(_batch(5)),
    "offset outside segment": lambda folder: (folder / f"{100_000:020}.log").write_bytes(_batch(50_000)),
    "leader epoch goes back": lambda folder: _append(
        _segments(folder)[-1], _batch(10_000, partition_leader_epoch=9) + _batch(10_001, partition_leader_epoch=3)
    ),
    "sequence gap": lambda folder: _append(
        _segments(folder)[-1],
        _batch(10_000, producer_id=900, producer_epoch=0, base_sequence=0)
        + _batch(10_001, producer_id=900, producer_epoch=0, base_sequence=4),
    ),
    "producer epoch goes back": lambda folder: _append(
        _segments(folder)[-1],
        _batch(10_000, producer_id=900, producer_epoch=3, base_sequence=0)
        + _batch(10_001, producer_id=900, producer_epoch=1, base_sequence=0),
    ),
    "missing index": lambda folder: (folder / f"{SEGMENT}.index").unlink(),
    "offset index": lambda folder: _flip(folder / f"{SEGMENT}.index", 7),
    "time index": lambda folder: _flip(folder / f"{SEGMENT}.timeindex", 0),
    "producer snapshot": lambda folder: _flip(next(folder.glob("*.snapshot")), 12),
    "small file": lambda folder: (folder / "leader-epoch-checkpoint").write_text("0\n3\n0 0\n"),
    "leader epochs disagree": lambda folder: (folder / "leader-epoch-checkpoint").write_text("0\n2\n-1 0\n0 77\n"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_names_the_damage(cli: Cli, folder: Path, kind: str) -> None:
    DAMAGE[kind](folder)
    assert kind in checks_of(cli, folder)


def test_names_an_index_cut_in_an_entry(cli: Cli, folder: Path) -> None:
    index = folder / f"{SEGMENT}.index"
    index.write_bytes(index.read_bytes()[:-3])
    assert checks_of(cli, folder) == ["offset index"]


def test_an_index_entry_past_a_torn_tail_is_named(cli: Cli, folder: Path) -> None:
    first = _segments(folder)[0]
    first.write_bytes(first.read_bytes()[: first.stat().st_size // 2])
    assert {"offset index", "torn tail"} <= set(checks_of(cli, folder))


def test_a_transaction_index_without_its_markers_is_named(cli: Cli, ledger: Path) -> None:
    index = next(path for path in sorted(ledger.glob("*.txnindex")) if path.stat().st_size)
    _flip(index, 25)
    assert checks_of(cli, ledger) == ["transaction index"]


def test_a_log_that_ends_before_what_was_flushed_is_named(cli: Cli, tmp_path: Path, disks: Path) -> None:
    disk = Path(shutil.copytree(disks / "node-1", tmp_path / "node"))
    last = _segments(disk / "packed-0")[-1]
    last.write_bytes(last.read_bytes()[:200])
    assert "log ends too early" in checks_of(cli, disk)


def test_compaction_is_no_sequence_gap(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "compacted-0"
    folder.mkdir()
    producer = {"producer_id": 7, "producer_epoch": 0}
    data = _batch(0, **producer, base_sequence=0) + _batch(9, **producer, base_sequence=9)
    (folder / f"{SEGMENT}.log").write_bytes(data)
    (folder / f"{SEGMENT}.index").touch()
    assert checks_of(cli, folder) == []


def test_a_coordinator_writes_every_commit_with_sequence_0(cli: Cli, tmp_path: Path) -> None:
    """So did 3.9.2 for two commits of one transaction."""
    folder = tmp_path / "__consumer_offsets-1"
    folder.mkdir()
    producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    (folder / f"{SEGMENT}.log").write_bytes(_batch(0, **producer) + _batch(1, **producer))
    (folder / f"{SEGMENT}.index").touch()
    assert checks_of(cli, folder) == []


def test_the_first_epoch_starts_where_records_were_deleted(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "trimmed-0"
    folder.mkdir()
    (folder / f"{SEGMENT}.log").write_bytes(b"".join(_batch(at, partition_leader_epoch=0) for at in range(9)))
    (folder / f"{SEGMENT}.index").touch()
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 5\n")
    assert checks_of(cli, folder) == []


def test_every_kind_of_finding_has_a_test() -> None:
    elsewhere = {"transaction index", "log ends too early", "unreadable batch"}
    assert {*DAMAGE, *elsewhere} == {*SEVERITY_OF}


def test_a_checked_batch_that_no_header_can_have_is_unreadable(cli: Cli, folder: Path) -> None:
    segment = _segments(folder)[0]
    data = bytearray(segment.read_bytes())
    data[57] = 0xFF  # a records count below zero
    segment.write_bytes(data)
    assert "unreadable batch" in checks_of(cli, folder)
