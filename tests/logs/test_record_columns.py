"""The columns of Kafka's own records are what the careful codec reads, and hold no credential."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafkascope.codec.message import encode
from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from kafkascope.logs.batches import Batch, Damage, read_batches
from kafkascope.logs.directories import list_files
from kafkascope.logs.files import OF_BATCHES
from kafkascope.logs.record_columns import RecordTable, read_record_columns
from kafkascope.logs.record_frames import RecordFrames
from kafkascope.logs.typed_records import framer_of
from kafkascope.logs.window import Window
from tests.columnar.expected import expected, without_nulls
from tests.logs.internal_topics import INTERNAL_TOPICS, mutated, packed, records_of, write_segment

_COMPARED = ("offset", "timestamp_ms", "version", "key", "value")
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
OFFSETS_TOPIC, METADATA = "__consumer_offsets", "__cluster_metadata"


def _rows(path: str, topic: str) -> tuple[dict[tuple[str, int], Any], list[Damage]]:
    """By type and offset."""
    rows: dict[tuple[str, int], Any] = {}
    damage = []
    with Window(path) as window:
        for item in read_record_columns(window, topic):
            if isinstance(item, RecordTable):
                assert isinstance(item.rows, pa.Table)
                rows |= {(item.type, row["offset"]): row for row in item.rows.to_pylist()}
            else:
                damage.append(item)
    return rows, damage


def _expected(path: str, topic: str) -> dict[tuple[str, int], Any]:
    framer = framer_of(topic)
    assert framer is not None
    rows: dict[tuple[str, int], Any] = {}
    with Window(path) as window:
        for item in read_batches(window):
            assert isinstance(item, Batch)
            for record in () if item.header.is_control else item.records():
                framed = framer(record)
                row: dict[str, Any] = {
                    "offset": record.offset,
                    "timestamp_ms": record.timestamp,
                    "version": framed.version,
                }
                if framed.key_message:
                    row["key"] = expected((framed.key_message, framed.key_version, None), framed.key)
                if framed.value_message and framed.value is not None and framed.version is not None:
                    row["value"] = expected((framed.value_message, framed.version, None), framed.value)
                rows[framed.type or "", record.offset] = without_nulls(row)
    return rows


def test_columns_are_what_the_careful_codec_reads(disks: Path) -> None:
    read = set()
    for file in list_files(str(disks / "node-1")):
        framer = framer_of(file.topic)
        if file.kind not in OF_BATCHES or framer is None:
            continue
        rows, damage = _rows(file.path, file.topic or "")
        assert damage == []
        wanted = _expected(file.path, file.topic or "")
        assert rows.keys() == wanted.keys()
        for place, row in rows.items():
            comparable = without_nulls({name: row.get(name) for name in _COMPARED})
            if place[0] == "ConfigRecord":
                comparable["value"].pop("value", None)
            assert comparable == wanted[place], (file.path, place)
        read |= {type_ for type_, _ in rows}
    assert {
        "OffsetCommit",
        "ShareSnapshot",
        "ShareUpdate",
        "TransactionLog",
        "PartitionRecord",
        "GroupMetadata",
    } <= read
    assert len(read) > 30


@pytest.mark.parametrize("topic", INTERNAL_TOPICS)
def test_kernel_and_careful_reader_make_the_same_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, topic: str
) -> None:
    """Of every type and version, packed in every way, whole and damaged."""
    seed = random.randrange(2**32)
    random_ = random.Random(seed)
    records = list(records_of(topic))
    whole = [*packed(records, "none"), *packed(mutated(records, random_), "none")]
    whole += [batch for name in COMPRESSIONS for batch in packed(mutated(records, random_), name, 9)]
    path = str(write_segment(tmp_path, topic, whole))
    tables, damage = _tables(path, topic)
    careful_batches = []

    def all_carefully(self: RecordFrames, window: Window, _: bytes, __: int, positions: Any, row: int, end: int) -> Any:
        for at in range(row, end):
            careful_batches.append(at)
            yield from self._carefully(window, at, int(positions[at]))

    monkeypatch.setattr(RecordFrames, "_of_data", all_carefully)
    careful, careful_damage = _tables(path, topic)
    assert len(careful_batches) == len(whole)
    assert tables.keys() == careful.keys()
    for name, table in tables.items():
        for row, other in zip(table, careful[name], strict=True):
            assert repr(row) == repr(other), (seed, name)
    assert damage - careful_damage == careful_damage - damage == Counter(), seed
    assert len(damage) > 1


def _tables(path: str, topic: str) -> tuple[dict[str, list[Any]], Counter[Damage]]:
    tables: dict[str, list[Any]] = {}
    damage: Counter[Damage] = Counter()
    with Window(path) as window:
        for item in read_record_columns(window, topic):
            if isinstance(item, RecordTable):
                tables.setdefault(item.type, []).extend(item.rows.to_pylist())
            else:
                damage[item] += 1
    return tables, damage


def test_settings_that_are_no_passwords_keep_their_value(tmp_path: Path) -> None:
    def setting(name: str, value: str) -> bytes:
        body = {"resourceType": 4, "resourceName": "1", "name": name, "value": value}
        return bytes([1, 4, 0]) + encode("ConfigRecord", 0, body)

    records = [
        Record(0, 1, None, setting("ssl.keystore.password", "store-secret")),
        Record(1, 1, None, setting("log.retention.ms", "77000")),
    ]
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(encode_records([new_batch(records)]))
    rows, _ = _rows(str(path), METADATA)
    assert [row["value"]["value"] for row in rows.values()] == [None, "77000"]


def test_tombstones_and_unknown_types_keep_their_place(tmp_path: Path) -> None:
    def commit(partition: int) -> bytes:
        return b"\0\1" + encode("OffsetCommitKey", 1, {"group": "g", "topic": "t", "partition": partition})

    value = b"\0\4" + encode(
        "OffsetCommitValue", 4, {"offset": 9, "leaderEpoch": 1, "metadata": "", "commitTimestamp": 1}
    )
    records = [
        Record(0, 1, commit(0), value), Record(1, 1, commit(1), None), Record(2, 1, b"\x7f\xff", value),
        Record(3, 1, commit(3), b"\x7f\xff"), Record(4, 1, commit(4), value[:-3]),
    ]  # fmt: skip
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(encode_records([new_batch(records)]))
    rows, damage = _rows(str(path), OFFSETS_TOPIC)
    assert [row["offset"] for row in rows.values()] == [0, 1, 4]
    assert rows["OffsetCommit", 0]["value"]["offset"] == 9
    assert rows["OffsetCommit", 1]["value"] is None
    assert rows["OffsetCommit", 4]["value"]["_error"]
    assert [item.detail.partition(":")[0] for item in damage] == ["offset 2", "offset 3"]
