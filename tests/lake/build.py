"""Rows and ingests for the tests of the lake: few columns given, the others null."""

import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafkascope.lake.home import Lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.tables import LakeTable, table_named
from kafkascope.lake.write.commit import commit
from kafkascope.lake.write.files import Files, NewFile

ROOT = Path(__file__).resolve().parents[2]
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
EXCHANGES, CONNECTIONS, CAPTURES = (table_named(name) for name in ("exchanges", "connections", "captures"))


def rows(table: LakeTable, values: Iterable[dict[str, Any]]) -> pa.Table:
    kept = [field for field in table.file_schema if field.name != "ingest_id" or table.name == "captures"]
    return pa.Table.from_pylist(list(values), schema=pa.schema(kept))


def exchanges(names: Iterable[str], at: datetime | None = NOON) -> pa.Table:
    return rows(EXCHANGES, [{"exchange_id": name, "request_at": at} for name in names])


def capture(ingest: str, last_at: datetime = NOON) -> pa.Table:
    return rows(CAPTURES, [{"ingest_id": ingest, "capture_uri": f"{ingest}.pcap", "last_at": last_at}])


def written(lake: Lake, ingest: str, table: LakeTable, *parts: pa.Table) -> list[NewFile]:
    files = Files(lake, ingest)
    for part in parts:
        files.add(table, part)
    return files.close()


def land(lake: Lake, ingest: str, *parts: pa.Table, last_at: datetime = NOON) -> None:
    """A whole ingest of exchanges."""
    half_land(lake, ingest, *parts)
    commit(lake, CAPTURES, written(lake, ingest, CAPTURES, capture(ingest, last_at)), ingest)


def half_land(lake: Lake, ingest: str, *parts: pa.Table) -> None:
    """The same killed before its last commit."""
    commit(lake, EXCHANGES, written(lake, ingest, EXCHANGES, *parts), ingest)


def seen(lake: Lake, ingests: frozenset[str] | None = None) -> list[str]:
    """Ids of the visible exchanges, each as often as it is there."""
    return sorted(dataset(lake, "exchanges", ingests).to_table(columns=["exchange_id"]).column(0).to_pylist())


def on_disk(lake: Lake, table: str = "exchanges") -> set[str]:
    folder = Path(lake.table(table).path)
    return {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")}


def days(count: int) -> timedelta:
    return timedelta(days=count)


def together(script: str, calls: Sequence[Sequence[str]], **environment: str) -> list[str]:
    """The script in processes of their own, one a call, all let go at the same moment: what each printed. It has to
    call `ready()` before what matters."""
    import os

    head = "import sys\ndef ready():\n    print('ready', flush=True)\n    sys.stdin.readline()\n"
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", head + script, *call],
            cwd=ROOT,
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for call in calls
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", process.communicate(timeout=60)[1]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        answers = [process.communicate(timeout=60) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    for process, (_, error) in zip(processes, answers, strict=True):
        assert process.returncode == 0, error
    return [out.strip() for out, _ in answers]
