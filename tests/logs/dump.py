"""Writes the events of a file as Kafka's DumpLogSegments prints them, for comparison with what it does print."""

import json
from collections.abc import Iterator
from typing import Any

from kafkascope.codec.records.record_types import Record, RecordBatch
from kafkascope.logs.index_files import AbortedTransaction, OffsetEntry, TimeEntry
from kafkascope.logs.reader import BatchEvent, EntryEvent, LogReader, RecordEvent
from kafkascope.logs.rows import batch_row, sequence_of

_CONTROL = {
    "LEADER_CHANGE": "LeaderChange:",
    "SNAPSHOT_HEADER": "SnapshotHeader",
    "SNAPSHOT_FOOTER": "SnapshotFooter",
    "KRAFT_VERSION": "KRaftVersion",
    "KRAFT_VOTERS": "KRaftVoters",
}
# A line in three parts: what DumpLogSegments prints of any record, its key, its value.
Line = tuple[str, Any, Any]
_FRAMED = ("__cluster_metadata", "__remote_log_metadata")


def lines_of(path: str) -> Iterator[Line]:
    for event in LogReader((path,), records=True).events():
        if isinstance(event, BatchEvent):
            yield _batch(batch_row(event.file, event.batch)), None, None
        elif isinstance(event, RecordEvent):
            yield _record(event)
        elif isinstance(event, EntryEvent):
            yield _entry(event.entry), None, None


def parsed(line: str, topic: str | None) -> Line:
    """A line as the tool prints it."""
    if not line.startswith("|"):
        return line, None, None
    start, mark, control = line.partition("] endTxnMarker: ")
    if mark:
        return f"{start}] endTxnMarker: {control}", None, None
    for name in _CONTROL.values():
        start, mark, value = line.partition(f"] {name} ")
        if mark:
            return f"{start}] {name}", None, json.loads(value)
    # An empty key or value ends its line with the colon.
    start, _, payload = line.partition(" payload:")
    start, _, key = start.partition(" key:")
    internal = topic is not None and topic.startswith("__")
    return start, _value(key.removeprefix(" "), internal), _value(payload.removeprefix(" "), internal)


def _value(text: str, internal: bool) -> Any:
    if not text:
        return None
    return json.loads(text) if internal and text.startswith("{") else text


def _batch(row: dict[str, Any]) -> str:
    time = row["max_timestamp_ms"]
    if row["magic"] < 2:
        head = f"offset: {row['last_offset']}"
    else:
        horizon = row["delete_horizon_ms"]
        horizon = "OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]"
        head = (
            f"baseOffset: {row['base_offset']} lastOffset: {row['last_offset']} count: {row['records_count']}"
            f" baseSequence: {row['base_sequence']} lastSequence: {row['last_sequence']}"
            f" producerId: {row['producer_id']} producerEpoch: {row['producer_epoch']}"
            f" partitionLeaderEpoch: {row['leader_epoch']} isTransactional: {_java(row['is_transactional'])}"
            f" isControl: {_java(row['is_control'])} deleteHorizonMs: {horizon}"
        )
    return (
        f"{head} position: {row['position']} {row['timestamp_type']}: {time} size: {row['size_bytes']}"
        f" magic: {row['magic']} compresscodec: {row['compression']} crc: {row['crc']} isvalid: {_java(row['crc_ok'])}"
    )


def _record(event: RecordEvent) -> Line:
    record, batch, typed = event.record, event.batch, event.typed
    start = _metadata(batch, record)
    if typed is None:
        return start, _text(record.key), _text(record.value)
    if batch.is_control:
        if typed.type in _CONTROL:
            return f"{start} {_CONTROL[typed.type]}", None, typed.value
        assert typed.value is not None
        return f"{start} endTxnMarker: {typed.type} coordinatorEpoch: {typed.value['coordinatorEpoch']}", None, None
    if event.file.topic in _FRAMED:
        name = "".join(f"_{c}" if c.isupper() else c.upper() for c in (typed.type or ""))[1:]
        return start, None, {"type": name, "version": typed.version, "data": typed.value}
    key = {"type": str(typed.type_number), "data": typed.key}
    value = "<DELETE>" if record.value is None else {"version": str(typed.version), "data": typed.value}
    return start, key, value


def _metadata(batch: RecordBatch, record: Record) -> str:
    sizes = [-1 if data is None else len(data) for data in (record.key, record.value)]
    start = f"| offset: {record.offset} {batch.timestamp_type}: {record.timestamp}"
    start = f"{start} keySize: {sizes[0]} valueSize: {sizes[1]}"
    if batch.magic < 2:
        return start
    names = ",".join(name for name, _ in record.headers)
    return f"{start} sequence: {sequence_of(batch, record)} headerKeys: [{names}]"


def _entry(entry: object) -> str:
    if isinstance(entry, OffsetEntry):
        return f"offset: {entry.offset} position: {entry.position}"
    if isinstance(entry, TimeEntry):
        return f"timestamp: {entry.timestamp} offset: {entry.offset}"
    if isinstance(entry, AbortedTransaction):
        return (
            f"version: {entry.version} producerId: {entry.producer_id} firstOffset: {entry.first_offset}"
            f" lastOffset: {entry.last_offset} lastStableOffset: {entry.last_stable_offset}"
        )
    assert isinstance(entry, dict)
    opened = entry["current_txn_first_offset"]
    opened_text = "OptionalLong.empty" if opened < 0 else f"OptionalLong[{opened}]"
    text = (
        f"producerId: {entry['producer_id']} producerEpoch: {entry['producer_epoch']}"
        f" coordinatorEpoch: {entry['coordinator_epoch']} currentTxnFirstOffset: {opened_text}"
        f" lastTimestamp: {entry['timestamp']}"
    )
    if entry["last_offset"] < 0:
        return text
    # Kafka names the first sequence, the file has the last one and how many came before it.
    first = entry["last_sequence"] - entry["offset_delta"]
    return (
        f"{text} firstSequence: {first if first >= 0 else first + (1 << 31)} lastSequence: {entry['last_sequence']}"
        f" lastOffset: {entry['last_offset']} offsetDelta: {entry['offset_delta']} timestamp: {entry['timestamp']}"
    )


def _text(data: bytes | None) -> str | None:
    return None if data is None or not data else data.decode()


def _java(value: bool) -> str:
    return "true" if value else "false"


def hidden_paths(ours: Any, theirs: Any, path: str = "") -> set[str]:
    """Where we have null and Kafka has something; every other difference fails."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        assert ours.keys() == theirs.keys(), path
        return {hidden for name in ours for hidden in hidden_paths(ours[name], theirs[name], f"{path}.{name}")}
    if isinstance(theirs, list) and isinstance(ours, list):
        assert len(ours) == len(theirs), path
        return {hidden for pair in zip(ours, theirs, strict=True) for hidden in hidden_paths(*pair, path)}
    if ours is None and theirs is not None:
        return {path}
    assert ours == theirs, path
    return set()
