"""Reads the small files of a log directory as JSON values: checkpoints, metadata of partitions and disks, the state of
the quorum. `InputError` names the line of one that Kafka couldn't read either."""

import json
from collections.abc import Callable
from typing import Any

from kafkascope.codec.json_form import parse_uuid
from kafkascope.errors import InputError
from kafkascope.limits import MAX_SMALL_FILE_BYTES
from kafkascope.logs import files
from kafkascope.logs.window import Source, Window

_VERSION = 0


def read_small_file(path: str, kind: str) -> dict[str, Any]:
    return parse_small_file(path, kind, read_whole(path))


def parse_small_file(path: str, kind: str, content: bytes) -> dict[str, Any]:
    """`path` is for errors."""
    return _READERS[kind](path, content.decode(errors="replace"))


def read_whole(path: str, source: Source | None = None) -> bytes:
    with Window(path, source) as window:
        if window.size > MAX_SMALL_FILE_BYTES:
            raise InputError(f"{path}: {window.size} bytes; at most {MAX_SMALL_FILE_BYTES} are read")
        return window.read(0, window.size)


def _leader_epochs(path: str, text: str) -> dict[str, Any]:
    rows = _checkpoint(path, text, 2)
    return {"epochs": [{"epoch": _number(path, row, 0), "start_offset": _number(path, row, 1)} for row in rows]}


def _offsets(path: str, text: str) -> dict[str, Any]:
    rows = _checkpoint(path, text, 3)
    return {
        "offsets": [
            {"topic": row[0], "partition": _number(path, row, 1), "offset": _number(path, row, 2)} for row in rows
        ]
    }


def _checkpoint(path: str, text: str, columns: int) -> list[list[str]]:
    """The rows after version and count."""
    lines = text.splitlines()
    if not lines:
        # A file that was created and not written yet.
        return []
    if len(lines) < 2:
        raise InputError(f"{path}: {len(lines)} lines; a checkpoint starts with its version and a count")
    if lines[0].strip() != str(_VERSION):
        raise InputError(f"{path}, line 1: version {lines[0][:20]!r}; expected {_VERSION}")
    expected = _number(path, [lines[1].strip()], 0, "line 2: the count")
    rows = [line.split() for line in lines[2:] if line.strip()]
    for number, row in enumerate(rows, 3):
        if len(row) != columns:
            raise InputError(f"{path}, line {number}: {len(row)} columns, expected {columns}")
    if len(rows) != expected:
        raise InputError(f"{path}: {len(rows)} entries, its count says {expected}")
    return rows


def _number(path: str, row: list[str], column: int, place: str = "an entry") -> int:
    text = row[column]
    if not text.removeprefix("-").isdecimal() or len(text) > 20:
        raise InputError(f"{path}, {place}: {text[:20]!r} isn't a number")
    return int(text)


def _partition_metadata(path: str, text: str) -> dict[str, Any]:
    lines = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    if lines.get("version") != str(_VERSION):
        raise InputError(f"{path}, line 1: version {str(lines.get('version'))[:20]!r}; expected {_VERSION}")
    topic_id = lines.get("topic_id", "")
    try:
        parse_uuid(topic_id)
    except ValueError:
        raise InputError(f"{path}, line 2: the topic id isn't a uuid") from None
    return {"version": _VERSION, "topic_id": topic_id}


def _properties(_: str, text: str) -> dict[str, Any]:
    pairs = (line.partition("=") for line in text.splitlines() if line.strip() and not line.startswith(("#", "!")))
    return {key.strip(): value.strip() for key, _, value in pairs}


def _json_object(path: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"{path}: this isn't JSON") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: expected a JSON object")
    return value


_READERS: dict[str, Callable[[str, str], dict[str, Any]]] = {
    files.LEADER_EPOCHS: _leader_epochs,
    files.OFFSET_CHECKPOINT: _offsets,
    files.PARTITION_METADATA: _partition_metadata,
    files.META_PROPERTIES: _properties,
    files.QUORUM_STATE: _json_object,
    files.CLEAN_SHUTDOWN: _json_object,
}
