"""What other tools read of a lake's tables: a filter on a column of any type gives the rows of a full scan."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from kafkascope.lake.home import Lake
from kafkascope.lake.tables import DATE, INGEST_ID, LakeTable, table_named
from kafkascope.lake.write.commit import commit
from kafkascope.lake.write.files import Files

START = datetime(2026, 11, 15, 12, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")
# Longer than what statistics keep of a text, the last with the last character where it is cut.
LONG = ["orders-" + "x" * 40 + str(number) for number in range(3)] + ["\U0010ffff" * 40]
SCHEMA = pa.schema(
    [
        ("at", TIME),
        ("late_at", TIME),
        ("small", pa.int8()),
        ("number", pa.int64()),
        ("share", pa.float64()),
        ("flag", pa.bool_()),
        ("same", pa.bool_()),
        ("text", pa.string()),
        ("long", pa.string()),
        ("huge", pa.string()),
        ("raw", pa.binary()),
        ("items", pa.list_(pa.int32())),
        ("leader", pa.struct([("id", pa.int32()), ("host", pa.string())])),
        ("never", pa.struct([("id", pa.int32())])),
        ("mixed", pa.struct([("id", pa.int32()), ("items", pa.list_(pa.int32()))])),
        ("nothing", pa.int64()),
        (INGEST_ID, pa.string()),
    ]
)
TABLE = LakeTable("exchanges", SCHEMA.append(pa.field(DATE, pa.date32())), "at")


def row(number: int) -> dict[str, Any]:
    part = number // 40
    return {
        "at": START + timedelta(seconds=number, microseconds=number * 7),
        "late_at": None if number % 3 else START + timedelta(days=part, microseconds=999),
        "small": number % 100 - 50,
        "number": (number - 60) * 10**15,
        "share": float("nan") if number == 50 else number / 7,
        "flag": bool(number % 2),
        "same": part == 1,
        "text": None if number % 5 == 0 else f"api-{part}-{number % 4}",
        "long": LONG[part],
        "huge": ("y" * 5_000 + str(number)) if number % 2 else "a",
        "raw": bytes([number]),
        "items": None if number % 4 == 0 else [number],
        "leader": None if number % 6 == 0 else {"id": number, "host": f"h{part}"},
        "never": None,
        "mixed": None if part == 2 else {"id": number, "items": None},
        "nothing": None,
        INGEST_ID: "i1",
    }


ROWS = [row(number) for number in range(160)]
_F = pc.field
# The same question three ways, and whether a row is in the answer.
QUESTIONS: dict[str, tuple[pc.Expression, Any, str, Callable[[dict[str, Any]], bool]]] = {
    "int8": (_F("small") < -40, pl.col("small") < -40, "small < -40", lambda row: row["small"] < -40),
    "int64": (
        _F("number") == 7 * 10**15, pl.col("number") == 7 * 10**15, "number = 7000000000000000",
        lambda row: row["number"] == 7 * 10**15,
    ),
    "timestamp": (
        _F("at") >= START + timedelta(seconds=155, microseconds=155 * 7),
        pl.col("at") >= START + timedelta(seconds=155, microseconds=155 * 7),
        "\"at\" >= TIMESTAMPTZ '2026-11-15 12:02:35.001085+00'",
        lambda row: row["at"] >= START + timedelta(seconds=155, microseconds=155 * 7),
    ),
    "timestamp null": (_F("late_at").is_null(), pl.col("late_at").is_null(), "late_at IS NULL",
                       lambda row: row["late_at"] is None),
    "float": (_F("share") > 22.0, (pl.col("share") > 22.0) & pl.col("share").is_not_nan(),
              "share > 22.0 AND NOT isnan(share)", lambda row: row["share"] > 22.0),
    "bool": (_F("flag"), pl.col("flag"), "flag", lambda row: row["flag"]),
    "bool of one file": (_F("same"), pl.col("same"), "same", lambda row: row["same"]),
    "text": (_F("text") == "api-2-1", pl.col("text") == "api-2-1", "text = 'api-2-1'",
             lambda row: row["text"] == "api-2-1"),
    "text null": (_F("text").is_null(), pl.col("text").is_null(), "text IS NULL", lambda row: row["text"] is None),
    "long text": (_F("long") == LONG[2], pl.col("long") == LONG[2], f"long = '{LONG[2]}'",
                  lambda row: row["long"] == LONG[2]),
    "last text": (_F("long") == LONG[3], pl.col("long") == LONG[3], f"long = '{LONG[3]}'",
                  lambda row: row["long"] == LONG[3]),
    "huge text": (_F("huge") > "y", pl.col("huge") > "y", "huge > 'y'", lambda row: row["huge"] > "y"),
    "binary": (_F("raw") == b"\x05", pl.col("raw") == b"\x05", "raw = '\\x05'::BLOB", lambda row: row["raw"] == b"\5"),
    "list null": (_F("items").is_null(), pl.col("items").is_null(), "items IS NULL",
                  lambda row: row["items"] is None),
    "struct null": (_F("leader").is_null(), pl.col("leader").is_null(), "leader IS NULL",
                    lambda row: row["leader"] is None),
    "struct that never is": (_F("never").is_null(), pl.col("never").is_null(), "never IS NULL", lambda _: True),
    "field of a struct": (
        _F("leader", "host") == "h1", pl.col("leader").struct.field("host") == "h1", "leader.host = 'h1'",
        lambda row: row["leader"] is not None and row["leader"]["host"] == "h1",
    ),
    "column that is null": (_F("nothing").is_valid(), pl.col("nothing").is_not_null(), "nothing IS NOT NULL",
                            lambda _: False),
    "ingest": (_F(INGEST_ID) == "i1", pl.col(INGEST_ID) == "i1", "ingest_id = 'i1'", lambda _: True),
}  # fmt: skip


def four_files(lake: Lake) -> str:
    """Each with values of its own."""
    for start in range(0, len(ROWS), 40):
        files = Files(lake, f"i{start}")
        files.add(TABLE, pa.Table.from_pylist(ROWS[start : start + 40], schema=SCHEMA))
        commit(lake, TABLE, files.close(), f"i{start}")
    return str(lake.table("exchanges").uri)


@pytest.fixture
def uri(lake: Lake) -> str:
    return four_files(lake)


def test_filters_give_the_rows_of_a_full_scan(uri: str) -> None:
    dataset = DeltaTable(uri).to_pyarrow_dataset()
    assert len(list(dataset.get_fragments())) == 4
    lazy = pl.scan_delta(uri)
    through_arrow = pl.scan_delta(uri, use_pyarrow=True)
    with duckdb.connect() as database:
        database.register("rows", dataset)
        for name, (by_arrow, by_polars, by_sql, is_in) in QUESTIONS.items():
            expected = sorted(row["at"] for row in ROWS if is_in(row))
            by_reader = {
                "pyarrow": dataset.to_table(filter=by_arrow, columns=["at"]).column("at").to_pylist(),
                "Polars": lazy.filter(by_polars).select("at").collect()["at"].to_list(),
                "Polars through pyarrow": through_arrow.filter(by_polars).select("at").collect()["at"].to_list(),
                "DuckDB": [at for (at,) in database.sql("FROM rows").filter(by_sql).select('"at"').fetchall()],
            }
            for reader, times in by_reader.items():
                assert sorted(times) == expected, (name, reader)


def test_pandas_filters_give_the_rows_of_a_full_scan(uri: str) -> None:
    frame = DeltaTable(uri).to_pandas(filters=[("text", "=", "api-2-1")], columns=["at"])
    assert len(frame) == sum(row["text"] == "api-2-1" for row in ROWS)


def test_statistics_name_every_column_and_skip_files(uri: str) -> None:
    table = DeltaTable(uri)
    actions = pa.table(table.get_add_actions(flatten=True))
    for path in ("small", "number", "share", "flag", "text", "long", "huge", "leader.id", "leader.host", INGEST_ID):
        for side in ("min", "max", "null_count"):
            assert f"{side}.{path}" in actions.column_names, (side, path)
    fragments = list(table.to_pyarrow_dataset().get_fragments(filter=pc.field("text") == "api-2-1"))
    assert len(fragments) == 1


def test_a_table_of_the_catalog_has_statistics_of_all_its_columns(lake: Lake) -> None:
    table = table_named("consumer_group_heartbeat_response")
    files = Files(lake, "i1")
    at = pa.array([START], TIME)
    plain = {field.name: pa.nulls(1, field.type) for field in table.file_schema} | {"request_at": at}
    files.add(table, pa.table(plain, schema=table.file_schema))
    (made,) = files.close()
    assert json.loads(made.stats)["nullCount"].keys() == set(table.file_schema.names)
