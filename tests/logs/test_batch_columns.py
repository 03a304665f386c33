"""The columns of batches are the rows of the careful reader, whatever is in the file."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from kafkascope.logs.batch_columns import BATCH_COLUMNS, read_batch_columns
from kafkascope.logs.batches import Batch, Damage, read_batches
from kafkascope.logs.directories import LogFile, list_files
from kafkascope.logs.files import OF_BATCHES
from kafkascope.logs.rows import batch_row
from kafkascope.logs.window import Window
from tests.logs.recorded import PACKED

Rows = list[dict[str, Any] | Damage]


def _careful(path: Path, start: int = 0, end: int | None = None) -> Rows:
    file = LogFile(str(path), "segment", 0)
    with Window(str(path)) as window:
        items = list(read_batches(window, start, end))
    rows = [batch_row(file, item) if isinstance(item, Batch) else item for item in items]
    return [{name: row[name] for name in BATCH_COLUMNS.names} if isinstance(row, dict) else row for row in rows]


def _columns(path: Path, start: int = 0, end: int | None = None) -> Rows:
    rows: Rows = []
    with Window(str(path)) as window:
        for item in read_batch_columns(window, start, end):
            rows += item.to_pylist() if isinstance(item, pa.RecordBatch) else [item]
    return rows


def test_columns_of_recorded_segments_are_their_rows(disks: Path) -> None:
    read = 0
    for file in list_files(str(disks)):
        if file.kind in OF_BATCHES:
            rows = _columns(Path(file.path))
            assert rows == _careful(Path(file.path)), file.path
            read += len(rows)
    assert read > 1_000


def test_columns_of_damaged_segments_are_their_rows(disks: Path, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    random_ = random.Random(seed)
    data = (disks / "node-1" / PACKED).read_bytes()
    path = tmp_path / f"{0:020}.log"
    for _ in range(150):
        damaged = bytearray(data[: random_.randrange(len(data))] if random_.random() < 0.3 else data)
        for _ in range(random_.randrange(4)):
            if damaged:
                damaged[random_.randrange(len(damaged))] ^= 1 << random_.randrange(8)
        path.write_bytes(damaged)
        assert _columns(path) == _careful(path), seed


def test_a_tail_torn_at_any_byte_is_the_same(disks: Path, tmp_path: Path) -> None:
    data = (disks / "node-1" / PACKED).read_bytes()
    whole = _careful(disks / "node-1" / PACKED)
    starts = [row["position"] for row in whole if isinstance(row, dict)]
    path = tmp_path / f"{0:020}.log"
    for end in range(starts[2], starts[3]):
        path.write_bytes(data[:end])
        rows = _columns(path)
        assert rows == _careful(path) and rows[:2] == whole[:2]
        assert len(rows) == 2 + (end > starts[2])


@pytest.mark.parametrize("magic", [0, 1])
def test_message_sets_are_rows_too(tmp_path: Path, magic: int) -> None:
    records = [Record(offset, -1 if magic == 0 else 7, b"k", b"v") for offset in range(3)]
    data = encode_records([new_batch([record], magic=magic) for record in records])
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(data + encode_records([new_batch([Record(9, 7, b"k", b"v")])]))
    rows = _columns(path)
    assert len(rows) == 4
    assert rows == _careful(path)


def test_splits_at_batches_give_each_row_once(disks: Path) -> None:
    path = disks / "node-1" / PACKED
    whole = _careful(path)
    starts = [row["position"] for row in whole if isinstance(row, dict)]
    for cut in starts[1:]:
        assert _columns(path, 0, cut) + _columns(path, cut) == whole


def test_more_batches_than_one_table_holds(tmp_path: Path) -> None:
    batch = encode_records([new_batch([Record(0, 7, b"k", b"v")])])
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(batch * 70_000)
    assert len(_columns(path)) == 70_000
