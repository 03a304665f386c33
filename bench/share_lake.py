"""Builds a lake with one busy share group: members fetch from all its partitions and acknowledge what they got with
their next fetch. Made once, kept in `.cache/bench`."""

import shutil
from typing import Any

import numpy as np
import pyarrow as pa

from bench.traffic import FOLDER
from kafkascope.lake.home import SIGN, Lake, make_lake, open_lake
from kafkascope.lake.tables import LakeTable, table_named
from kafkascope.lake.write.commit import commit
from kafkascope.lake.write.files import Files

_EDITION = 2
_INGEST = "0123456789abcdef0123"
FIRST_US = 1_794_700_800_000_000  # 2026-11-15 00:00
PARTITIONS, MEMBERS = 48, 12
# Of one fetch: partitions, ranges of each, records of each range.
FETCHED, RANGES, RECORDS = 4, 25, 5
_EACH = FETCHED * RANGES
_STEP_US = 20_000
_TOPIC = "x67f1zwCR96dV41oFufCfw"
_FETCHES_AT_ONCE = 5_000


def share_lake(deliveries: int) -> Lake:
    """Each acquired range is a delivery."""
    folder = FOLDER / f"share-{deliveries}-v{_EDITION}"
    if (folder / SIGN).is_file():
        return open_lake(folder)
    beside = folder.with_suffix(".part")
    shutil.rmtree(beside, ignore_errors=True)
    lake = make_lake(beside)
    files = Files(lake, _INGEST)
    fetches = deliveries // _EACH
    for start in range(0, fetches, _FETCHES_AT_ONCE):
        numbers = np.arange(start, min(start + _FETCHES_AT_ONCE, fetches))
        for name, columns in _messages(numbers).items():
            files.add(table_named(name), _table(table_named(name), columns))
    uri = "file:///bench/share.pcap"
    last = FIRST_US + fetches * _STEP_US
    files.add(table_named("captures"), _table(table_named("captures"), {
        "ingest_id": pa.array([_INGEST]), "capture_uri": pa.array([uri]), "first_at": pa.array([FIRST_US]),
        "last_at": pa.array([last]),
    }))  # fmt: skip
    by_table: dict[str, list[Any]] = {}
    for file in files.close():
        by_table.setdefault(file.table, []).append(file)
    # Readers see an ingest once `captures` names it.
    for name in sorted(by_table, key=lambda name: name == "captures"):
        commit(lake, table_named(name), by_table[name], _INGEST)
    beside.rename(folder)
    return open_lake(folder)


def _messages(numbers: np.ndarray[Any, Any]) -> dict[str, dict[str, pa.Array]]:
    """Fetch `n` is of member `n % MEMBERS`, who acknowledges what fetch `n - MEMBERS` got."""
    member = numbers % MEMBERS
    keys = {
        "exchange_id": _texts("fetch-%08d", numbers),
        "connection_id": _texts("connection-%d", member),
        "client_id": _texts("app-%d", member),
        "broker_address": _texts("10.0.0.%d:9092", np.ones(len(numbers), np.int64)),
        "request_at": pa.array(FIRST_US + numbers * _STEP_US),
        "response_at": pa.array(FIRST_US + numbers * _STEP_US + 5_000),
    }
    group = pa.repeat(pa.scalar("busy"), len(numbers))
    request = {
        **keys,
        "group_id": group,
        "member_id": _texts("member-%d", member),
        "share_session_epoch": pa.array(numbers // MEMBERS, pa.int32()),
        "topics": _topics("acknowledgement_batches", numbers - MEMBERS, numbers >= MEMBERS),
    }
    response = {
        **keys,
        "error_code": pa.array(np.zeros(len(numbers), np.int16)),
        "acquisition_lock_timeout_ms": pa.array(np.full(len(numbers), 30_000, np.int32)),
        "responses": _topics("acquired_records", numbers, np.ones(len(numbers), bool)),
    }
    exchange = {
        **keys,
        "api": pa.repeat(pa.scalar("ShareFetch"), len(numbers)),
        "api_key": pa.array(np.full(len(numbers), 78, np.int16)),
        "api_version": pa.array(np.full(len(numbers), 1, np.int16)),
        "status": pa.repeat(pa.scalar("answered"), len(numbers)),
        "latency_us": pa.array(np.full(len(numbers), 5_000)),
        "group_id": group,
        "capture_uri": pa.repeat(pa.scalar("file:///bench/share.pcap"), len(numbers)),
    }
    return {"share_fetch_request": request, "share_fetch_response": response, "exchanges": exchange}


def _topics(field: str, fetches: np.ndarray[Any, Any], has: np.ndarray[Any, Any]) -> pa.Array:
    """Of each fetch one topic with its partitions, and the ranges of these."""
    of = fetches[has]
    first_place = of * FETCHED
    places = (first_place[:, None] + np.arange(FETCHED)).ravel()
    partition, turn = places % PARTITIONS, places // PARTITIONS
    offsets = ((turn * RANGES)[:, None] + np.arange(RANGES)).ravel() * RECORDS
    columns = {"first_offset": pa.array(offsets), "last_offset": pa.array(offsets + RECORDS - 1)}
    if field == "acquired_records":
        columns["delivery_count"] = pa.array(np.ones(len(offsets), np.int16))
    else:
        types = np.ones(len(offsets), np.int8)
        columns["acknowledge_types"] = pa.ListArray.from_arrays(np.arange(len(offsets) + 1, dtype=np.int32), types)
    ranges = _lists(_struct(columns), np.full(len(places), RANGES))
    by_place = _struct({"partition_index": pa.array(partition, pa.int32()), field: ranges})
    topic = _struct(
        {
            "topic_id": pa.repeat(pa.scalar(_TOPIC), len(of)),
            "partitions": _lists(by_place, np.full(len(of), FETCHED)),
        }
    )
    return _lists(topic, has.astype(np.int64))


def _texts(form: str, numbers: np.ndarray[Any, Any]) -> pa.Array:
    return pa.array([form % number for number in numbers.tolist()], pa.string())


def _struct(columns: dict[str, pa.Array]) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))


def _lists(values: pa.Array, lengths: np.ndarray[Any, Any]) -> pa.ListArray:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(offsets, values)


def _table(table: LakeTable, columns: dict[str, pa.Array]) -> pa.Table:
    """What isn't given is null, at any depth."""
    rows = len(next(iter(columns.values())))
    schema = pa.schema([field for field in table.schema if field.name not in (*table.partition_by, "ingest_id")])
    if table.name == "captures":
        schema = pa.schema([field for field in table.schema if field.name not in table.partition_by])
    filled = [_as(columns[f.name], f.type) if f.name in columns else pa.nulls(rows, f.type) for f in schema]
    return pa.table(filled, schema=schema)


def _as(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_list(kind):
        values = _as(array.flatten(), kind.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, type=kind)
    if pa.types.is_struct(kind):
        columns = {field.name: column for field, column in zip(array.type, array.flatten(), strict=True)}
        fields = [_as(columns[f.name], f.type) if f.name in columns else pa.nulls(len(array), f.type) for f in kind]
        return pa.StructArray.from_arrays(fields, fields=list(kind))
    return array.cast(kind)
