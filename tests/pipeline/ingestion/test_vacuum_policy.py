"""Ingests delete what earlier ones left on the disk, so a lake doesn't grow by what it merges."""

from pathlib import Path
from typing import Any

import pytest

from kafkascope.lake.active import active_files
from kafkascope.lake.home import open_lake
from kafkascope.lake.write.commit import find_table
from kafkascope.pipeline.ingestion.ingest import Options, ingest
from tests.pipeline.ingestion.without_spark import cut, without_spark
from tests.pipeline.rows import lake_rows, read_rows
from tests.pipeline.test_ingest import capture

PARTS = 7
NOBODY: Any = None


def files_of(lake: Path) -> tuple[int, int]:
    """Parquet files on the disk, and those that the tables name."""
    home = open_lake(str(lake))
    tables = [table for name in home.tables() if (table := find_table(home, name)) is not None]
    return len(list(lake.rglob("*.parquet"))), sum(len(active_files(table)) for table in tables)


@pytest.mark.parametrize("hours", [None, 0.0])
def test_many_ingests_leave_the_files_that_the_policy_says(
    hours: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_spark(monkeypatch.setattr)
    recording = capture("share", tmp_path)
    parts = cut(recording, [200 * number for number in range(1, PARTS)])
    lake = tmp_path / "lake"
    deleted = 0
    for part in parts:
        done = ingest(NOBODY, [part], lake, Options(vacuum_hours=hours))
        deleted += done.tidied.deleted_files if done.tidied else 0
    present, named = files_of(lake)
    if hours == 0.0:
        assert present == named and deleted > 20
    else:
        # Nothing deletes them.
        assert present > named + 20 and deleted == 0
    assert {name: len(rows) for name, rows in lake_rows(str(lake)).items()} == {
        name: len(rows) for name, rows in read_rows(recording).items()
    }
