"""Builds a lake with a given number of exchanges: the recorded incidents over and over through one day, with bodies.
Made once, kept in `.cache/bench`."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from bench.traffic import FOLDER
from kafkascope.lake.home import SIGN, Lake, make_lake, open_lake
from kafkascope.lake.read.visible_rows import dataset, table_in
from kafkascope.lake.tables import DATE, INGEST_ID, message_of, table_named
from kafkascope.lake.upkeep.compact import compact
from kafkascope.lake.write.commit import commit
from kafkascope.lake.write.files import Files

_EDITION = 1
EXCHANGES = 1_000_000
# As many as a day of hourly recordings gives.
INGESTS = 24
FIRST_US = 1_794_700_800_000_000  # 2026-11-15 00:00
DAY_US = 86_400_000_000
# What earlier figures were measured with.
_RECORDINGS = ("clients", "quorum", "share", "streams")
# Kept in one copy alone, of the last hours.
RARE = "FENCED_LEADER_EPOCH"
_TIMES = ("request_at", "response_at", "first_at", "last_at", "closed_at")
_IDS = ("exchange_id", "connection_id")


def large_lake(count: int = EXCHANGES) -> Lake:
    folder = FOLDER / f"explorer-{count}-v{_EDITION}"
    if (folder / SIGN).is_file():
        return open_lake(folder)
    beside = folder.with_suffix(".part")
    shutil.rmtree(beside, ignore_errors=True)
    shutil.rmtree(small := folder.with_suffix(".small"), ignore_errors=True)
    _fill(make_lake(beside), _recorded(small), count)
    beside.rename(folder)
    shutil.rmtree(small)
    return open_lake(folder)


def _recorded(folder: Path) -> Lake:
    from tests.captures import HERE
    from tests.support.lakes import ingest_here

    return ingest_here([HERE / name / "capture.pcap.xz" for name in _RECORDINGS], folder)


def _fill(lake: Lake, small: Lake, count: int) -> None:
    exchanges = dataset(small, "exchanges").to_table()
    started = {
        row["capture_uri"]: row["request_at_min"]
        for row in exchanges.group_by("capture_uri").aggregate([("request_at", "min")]).to_pylist()
    }
    starts = pa.table({"uri": list(started), "start": pa.array(started.values(), pa.timestamp("us", "UTC"))})
    of_exchange = pc.index_in(exchanges.column("capture_uri"), starts.column("uri").combine_chunks())
    begins = dict(
        zip(exchanges.column("exchange_id").to_pylist(), starts.column("start").take(of_exchange).to_pylist(),
            strict=True)
    )  # fmt: skip
    by_connection = dict(zip(exchanges.column("connection_id").to_pylist(), begins.values(), strict=True))
    copies = -(-count // len(exchanges))
    tables = [name for name in small.tables() if name in ("exchanges", "connections") or message_of(name)]
    for name in tables:
        rows = dataset(small, name).to_table()
        key, starts_by_id = ("connection_id", by_connection) if name == "connections" else ("exchange_id", begins)
        own = [starts_by_id.get(row_id) for row_id in rows.column(key).to_pylist()]
        rows = rows.filter(pc.is_valid(pa.array(own, pa.timestamp("us", "UTC"))))
        start = pa.array([at for at in own if at is not None], pa.timestamp("us", "UTC")).cast(pa.int64())
        table = table_in(small, name)
        for ingest, numbers in enumerate(_shares(copies)):
            files = Files(lake, f"{ingest:020x}")
            for number in numbers:
                files.add(table, _copy(rows.drop_columns([DATE, INGEST_ID]), start, number, copies))
            commit(lake, table_named(name), files.close(), f"{ingest:020x}")
    _captures(lake, small, [f"{ingest:020x}" for ingest in range(INGESTS)])
    # As an ingest ends.
    compact(lake)


def _shares(copies: int) -> Iterator[range]:
    for ingest in range(INGESTS):
        yield range(copies * ingest // INGESTS, copies * (ingest + 1) // INGESTS)


def _copy(rows: pa.Table, start: pa.Array, number: int, copies: int) -> pa.Table:
    """Names of its own, and a time of its own."""
    begin = FIRST_US + DAY_US * number // copies
    for index, field in enumerate(rows.schema):
        if field.name in _IDS:
            tail = pc.utf8_slice_codeunits(rows.column(index), 6)
            rows = rows.set_column(index, field, pc.binary_join_element_wise(f"{number:06x}", tail, ""))
        elif field.name in _TIMES:
            moved = pc.add(pc.subtract(rows.column(index).cast(pa.int64()), start), begin)
            rows = rows.set_column(index, field, moved.cast(field.type))
        elif field.name == "error" and number != copies * 9 // 10:
            common = pc.not_equal(rows.column(index), RARE)
            rows = rows.set_column(index, field, pc.if_else(common, rows.column(index), pa.scalar(None, pa.string())))
    return rows


def _captures(lake: Lake, small: Lake, ingests: list[str]) -> None:
    rows = dataset(small, "captures").to_table()
    names = rows.schema.get_field_index(INGEST_ID)
    for ingest in ingests:
        files = Files(lake, ingest)
        own = pa.repeat(pa.scalar(ingest, pa.string()), len(rows))
        files.add(table_named("captures"), rows.set_column(names, INGEST_ID, own))
        commit(lake, table_named("captures"), files.close(), ingest)
