"""What log directories of strangers may cost, each against its cap."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kafkascope import limits
from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from kafkascope.errors import InputError
from kafkascope.logs.check.finding import FindingList
from kafkascope.logs.check.producers import Producers
from kafkascope.logs.directories import list_files
from kafkascope.logs.files import OFFSET_CHECKPOINT
from kafkascope.logs.index_files import read_offset_index
from kafkascope.logs.small_files import read_small_file
from tests.hostile.child import run
from tests.logs.recorded import batches_of

MIB = 1 << 20
HALF_A_GIGABYTE = 500 * MIB


def test_folders_are_followed_to_a_limit(tmp_path: Path) -> None:
    folder = tmp_path
    for depth in range(limits.MAX_LOG_FOLDERS_DEEP + 3):
        (folder / "meta.properties").write_text(f"node.id={depth}\n")
        folder = folder / "deeper"
        folder.mkdir()
    assert len(list(list_files(str(tmp_path)))) == limits.MAX_LOG_FOLDERS_DEEP + 1


def test_the_largest_checkpoint_takes_less_than_half_a_gigabyte(tmp_path: Path) -> None:
    line = b"t 0 0\n"
    count = (limits.MAX_SMALL_FILE_BYTES - 20) // len(line)
    path = tmp_path / "replication-offset-checkpoint"
    path.write_bytes(b"0\n%d\n" % count + line * count)
    ran = run(
        "from kafkascope.logs.small_files import read_small_file",
        "print(len(read_small_file(sys.argv[1], 'offsets')['offsets']))",
        str(path),
    )
    assert int(ran.output) == count
    assert ran.peak < HALF_A_GIGABYTE
    path.write_bytes(bytes(limits.MAX_SMALL_FILE_BYTES + 1))
    with pytest.raises(InputError, match=r"at most 4194304 are read"):
        read_small_file(str(path), OFFSET_CHECKPOINT)


def test_the_largest_index_takes_less_than_half_a_gigabyte(tmp_path: Path) -> None:
    count = limits.MAX_INDEX_BYTES // 8
    path = tmp_path / f"{0:020}.index"
    entries = np.arange(1, count + 1, dtype=np.int64)
    path.write_bytes((entries << 32 | entries * 900).astype(">i8").tobytes())
    code = "print(len(read_offset_index(sys.argv[1], 0).entries))"
    ran = run("from kafkascope.logs.index_files import read_offset_index", code, str(path))
    assert int(ran.output) == count
    assert ran.peak < HALF_A_GIGABYTE
    path.write_bytes(bytes(limits.MAX_INDEX_BYTES + 8))
    with pytest.raises(InputError, match=r"at most 16777216 are read"):
        read_offset_index(str(path), 0)


def test_of_too_many_producers_the_oldest_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    batch = new_batch([Record(0, 7, b"k", b"v")], producer_id=0, producer_epoch=0, base_sequence=0)
    path.write_bytes(encode_records([batch]))
    (header,) = [item.header for item in batches_of(path)]
    producers, findings = Producers(), FindingList("log")
    for producer in range(limits.MAX_FOLLOWED_PRODUCERS + 1):
        producers.add(replace(header, producer_id=producer), 0, findings)
    # The first one goes on with a gap that nobody can know of any more; the last one with a gap that is known.
    producers.add(replace(header, producer_id=0, base_sequence=9), 0, findings)
    assert list(findings.take()) == []
    producers.add(replace(header, producer_id=limits.MAX_FOLLOWED_PRODUCERS, base_sequence=9), 0, findings)
    assert [finding.check for finding in findings.take()] == ["sequence gap"]


def test_findings_of_one_kind_are_listed_up_to_their_cap() -> None:
    findings = FindingList("log")
    for number in range(limits.MAX_LISTED_FINDINGS + 30):
        findings.add("crc", "wrong", position=number)
    listed = list(findings.take())
    assert len(listed) == limits.MAX_LISTED_FINDINGS + 1
    assert listed[-1].detail == "30 more of this kind"


def test_records_that_wait_for_their_tables_take_what_their_cap_says(tmp_path: Path) -> None:
    """Three times as many as may wait: some 5,000 commits per batch of 300 KB."""
    code = """
from kafkascope.codec.message import encode
from kafkascope.codec.records.record_data import Record, encode_records, new_batch
key = b"\\0\\1" + encode("OffsetCommitKey", 1, {"group": "g", "topic": "t", "partition": 1})
body = {"offset": 9, "leaderEpoch": 1, "metadata": "", "commitTimestamp": 1}
value = b"\\0\\4" + encode("OffsetCommitValue", 4, body)
batch = encode_records([new_batch([Record(at, 1, key, value) for at in range(5000)])])
with open(sys.argv[1], "wb") as file:
    for _ in range(3 * MAX_LOG_TABLE_BYTES // (5000 * len(key + value))):
        file.write(batch)
rows = 0
with Window(sys.argv[1]) as window:
    for table in read_record_columns(window, "__consumer_offsets"):
        rows += len(table.rows)
print(rows)
"""
    imports = """
from kafkascope.limits import MAX_LOG_TABLE_BYTES
from kafkascope.logs.record_columns import read_record_columns
from kafkascope.logs.window import Window
"""
    ran = run(imports, code, str(tmp_path / f"{0:020}.log"))
    assert int(ran.output) > 200_000
    assert ran.peak < HALF_A_GIGABYTE
