"""What people do to the tables of a lake with tools of their own, and what they read there."""

from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable

from kafkascope.lake.home import Lake


def optimize(uri: str) -> None:
    DeltaTable(uri).optimize.compact()


def z_order(uri: str) -> None:
    DeltaTable(uri).optimize.z_order([DeltaTable(uri).schema().fields[0].name])


def vacuum(uri: str) -> None:
    DeltaTable(uri).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def all_of_them(uri: str) -> None:
    for tool in (optimize, z_order, vacuum):
        tool(uri)


def everywhere(lake: Lake, tool: Callable[[str], None]) -> None:
    for name in lake.tables():
        tool(lake.table(name).uri)


def arrow_rows(uri: str, version: int | None = None) -> pa.Table:
    return pa.table(DeltaTable(uri, version=version).to_pyarrow_table())


def polars_rows(uri: str, version: int | None = None) -> pa.Table:
    return pl.scan_delta(uri, version=version).collect().to_arrow()


def duckdb_rows(uri: str, version: int | None = None) -> pa.Table:
    with duckdb.connect() as database:
        database.register("found", DeltaTable(uri, version=version).to_pyarrow_dataset())
        return database.sql("FROM found").to_arrow_table()


READERS: dict[str, Any] = {"deltalake": arrow_rows, "Polars": polars_rows, "DuckDB": duckdb_rows}
