"""Lines that the kernel writes are those of the careful path, whatever is in the file."""

import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from kafkascope.cli.log.run import row_of
from kafkascope.cli.output import json_text
from kafkascope.codec.message import encode
from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from kafkascope.columnar.secrets import open_settings
from kafkascope.logs import json_lines
from kafkascope.logs.reader import LinesEvent, LogReader, RecordEvent
from kafkascope.logs.selection import Selection
from kafkascope.logs.typed_records import type_names
from tests.logs.internal_topics import INTERNAL_TOPICS, control_data, mutated, packed, records_of, write_segment
from tests.logs.recorded import batches_of

ALL = Selection()
# The users' records of the recorded disks are of 2026-01-01, the others of the day of the recording.
NEW_YEAR, RECORDED = 1_767_276_000_000, 1_795_102_520_000
SELECTIONS = {
    "offsets": Selection(first_offset=5, end_offset=60),
    "first offset": Selection(first_offset=33),
    "end offset": Selection(end_offset=21),
    "time": Selection(from_ms=NEW_YEAR, until_ms=RECORDED),
    "since": Selection(from_ms=RECORDED),
    "until": Selection(until_ms=RECORDED),
    "commits": Selection(types=("OffsetCommit",)),
    "several types": Selection(types=("ConfigRecord", "ABORT", "GroupMetadata", "ShareUpdate", "LEADER_CHANGE")),
    "all of them": Selection(("__*",), 3, 150, RECORDED - 40_000, RECORDED, ("OffsetCommit", "NoOpRecord")),
}
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")


def _lines(
    path: Path, selection: Selection, *, fast: bool, records: bool
) -> tuple[list[str], int, Counter[str | None]]:
    """The lines, how many records the kernel wrote, and the types of the others."""
    text, written = [], 0
    careful: Counter[str | None] = Counter()
    for event in LogReader((str(path),), selection, records, dumps=json_text if fast else None).events():
        if isinstance(event, LinesEvent):
            text.append(event.lines.text)
            written += event.lines.records
        else:
            text.append(json_text(row_of(event)) + "\n")
            if isinstance(event, RecordEvent):
                careful[event.typed.type if event.typed else None] += 1
    return "".join(text).splitlines(), written, careful


def same(path: Path, selection: Selection = ALL, *, records: bool = False) -> tuple[int, Counter[str | None]]:
    wanted, _, _ = _lines(path, selection, fast=False, records=records)
    lines, written, careful = _lines(path, selection, fast=True, records=records)
    for line, other in zip(lines, wanted, strict=True):
        assert line == other
    return written, careful


@pytest.mark.parametrize("records", [False, True])
def test_lines_of_recorded_disks_are_the_careful_ones(disks: Path, records: bool) -> None:
    written, careful = same(disks, records=records)
    assert written > 2_000
    # What only the careful path writes, but for a few tags before every other field.
    assert set(careful) <= {"ClientQuotaRecord", "GroupMetadata", "BeginTransactionRecord",
                            "ConsumerGroupMemberMetadata"}  # fmt: skip


@pytest.mark.parametrize("name", SELECTIONS)
def test_filtered_lines_are_the_careful_ones(disks: Path, name: str) -> None:
    for records in (False, True):
        written, careful = same(disks, SELECTIONS[name], records=records)
        assert written > 20 and sum(careful.values()) < written


def _any_selection(random_: random.Random, types: list[str]) -> Selection:
    limits = [random_.choice([None, random_.randrange(600)]) for _ in range(2)]
    first_ms = random_.choice([None, 1_767_268_800_000 + random_.randrange(600)])
    last_ms = random_.choice([None, 1_767_268_800_000 + random_.randrange(900)])
    chosen = random_.sample(types, 2) if random_.random() < 0.5 else []
    return Selection((), limits[0], limits[1], first_ms, last_ms, tuple(chosen))


@pytest.mark.parametrize("topic", INTERNAL_TOPICS)
def test_every_type_and_version_of_record_is_the_same(tmp_path: Path, topic: str) -> None:
    seed = random.randrange(2**32)
    random_ = random.Random(seed)
    records = list(records_of(topic))
    for number, compression in enumerate(COMPRESSIONS):
        whole = records if not number else mutated(records, random_)
        path = write_segment(tmp_path / compression, topic, packed(whole, compression))
        selection = _any_selection(random_, type_names())
        try:
            written, _ = same(path)
            same(path, selection)
        except AssertionError:
            pytest.fail(f"seed {seed}, {compression}, {selection}")
        assert written > (0 if number else len(records) // 10)


def test_settings_are_shown_or_hidden_as_they_are_by_the_careful_path(tmp_path: Path) -> None:
    names = ["retention.ms", "ssl.keystore.password", "log.retention.ms", "listener.name.a.ssl.keystore.location",
             "listener.name.a.ssl.key.password", "", "my.plugin.secret", "retention.m", "retention.msx"]  # fmt: skip
    bodies = [
        {"resourceType": kind, "resourceName": "1", "name": name, "value": value}
        for kind in (0, 2, 4, 8, 16, 32, -1)
        for name in [*names, *sorted(set().union(*open_settings().values()))]
        for value in ("secret-value", None)
    ]
    records = [
        Record(at, 1, None, bytes([1, 4, 0]) + encode("ConfigRecord", 0, body)) for at, body in enumerate(bodies)
    ]
    written, careful = same(write_segment(tmp_path, "__cluster_metadata", packed(records, "none")))
    assert written > 1_000
    assert set(careful) == {"ConfigRecord"} and sum(careful.values()) == 7 * 2 * 2


def test_every_type_of_control_record_is_the_same(tmp_path: Path) -> None:
    path = write_segment(tmp_path, "orders", [control_data(random.Random(1))])
    written, _ = same(path)
    assert written > 30


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_records_of_users_are_the_same(tmp_path: Path, compression: str) -> None:
    random_ = random.Random(3)
    texts = ["", "plain", 'a "quote" \\ and\ttab\n', "\x00\x1f", "\x7f", "Grüße", "\u2028", "x" * 300]
    contents = [None, b"", b"1", b"12", b"123", bytes(range(256)), random_.randbytes(5_000)]
    records = [
        Record(at * at, 5 - at, random_.choice(contents), random_.choice(contents),
               tuple((random_.choice(texts), random_.choice(contents)) for _ in range(random_.randrange(4))))
        for at in range(400)
    ]  # fmt: skip
    batches = [
        encode_records([new_batch(records[at : at + 40], compression=compression, timestamp_type=stamp)])
        for at, stamp in zip(range(0, 400, 40), ["CreateTime", "LogAppendTime"] * 5, strict=True)
    ]
    path = write_segment(tmp_path, "orders", batches)
    written, careful = same(path, records=True)
    assert written > 150 and sum(careful.values()) + written == 400


def test_a_batch_that_kafka_would_frame_differently_is_the_same(tmp_path: Path) -> None:
    """Each byte of the records in turn, under a checksum that is right."""
    records = list(records_of("__consumer_offsets"))[:3]
    (data,) = packed(records, "none")
    for at in range(61, len(data)):
        for value in (0, 1, 0x7F, 0x80, 0xFF, data[at] ^ 1):
            changed = bytearray(data)
            changed[at] = value
            changed[17:21] = json_lines_crc(changed).to_bytes(4, "big")
            path = write_segment(tmp_path, "__consumer_offsets", [bytes(changed), data])
            same(path)


def json_lines_crc(data: bytearray) -> int:
    from crc32c import crc32c

    return crc32c(bytes(data[21:]))


def test_damaged_segments_are_the_same(disks: Path, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    random_ = random.Random(seed)
    source = max((disks / "node-1").glob("__consumer_offsets-*/*.log"), key=lambda path: path.stat().st_size)
    data = source.read_bytes()[:20_000]
    for _ in range(60):
        damaged = bytearray(data[: random_.randrange(len(data))] if random_.random() < 0.3 else data)
        for _ in range(random_.randrange(1, 4)):
            if damaged:
                damaged[random_.randrange(len(damaged))] ^= 1 << random_.randrange(8)
        path = write_segment(tmp_path, "__consumer_offsets", [bytes(damaged)])
        try:
            same(path)
            same(path, Selection(first_offset=5, end_offset=40, types=("OffsetCommit", "ABORT")))
            same(path, Selection(first_offset=5, end_offset=40))
        except AssertionError:
            pytest.fail(f"seed {seed}")


@pytest.mark.parametrize("magic", [0, 1])
def test_records_of_message_sets_are_the_same(tmp_path: Path, magic: int) -> None:
    """Compressed ones too, in topics of users and of Kafka's own."""
    records = [
        replace(record, offset=at, timestamp=-1 if magic == 0 else record.timestamp)
        for at, record in enumerate(list(records_of("__consumer_offsets"))[:40])
    ]
    data = [encode_records([new_batch(records, magic=magic, compression="gzip")])]
    for topic, asked in (("__consumer_offsets", False), ("orders", True)):
        path = write_segment(tmp_path, topic, data)
        assert sum(same(path, records=asked)[1].values()) == 40
        assert sum(same(path, Selection(first_offset=30), records=asked)[1].values()) == 10


def test_lines_that_need_more_room_than_there_is_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The room ends in the middle of every line, and some records alone need more."""
    records = list(records_of("__cluster_metadata"))[:300]
    path = write_segment(tmp_path, "__cluster_metadata", packed(records, "none"))
    (header, *_) = batches_of(path)
    assert header.header.records_count == 50
    for room in (4_000, 5_003):
        monkeypatch.setattr(json_lines, "_OUT_BYTES", room)
        written, careful = same(path)
        assert written and careful


def test_nothing_is_read_or_written_outside_of_the_room() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.logs.guarded_lines"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2_000:]
