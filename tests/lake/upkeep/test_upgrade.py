"""Lakes of format 1 are brought to this format by whatever writes to them: renamed columns, the same rows."""

import json
from dataclasses import replace as changed
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafkascope.errors import InputError
from kafkascope.lake.active import active_files
from kafkascope.lake.file_names import COMPACTED, pending
from kafkascope.lake.home import LAKE_FORMAT, SIGN, Lake, find_lake, make_lake, open_lake
from kafkascope.lake.marts import MARTS
from kafkascope.lake.read.former_names import FORMER_NAMES
from kafkascope.lake.read.visible_rows import dataset, known_table
from kafkascope.lake.tables import DATE, LakeTable
from kafkascope.lake.upkeep import upgrade as module
from kafkascope.lake.upkeep.upgrade import lake_to_write, upgraded
from kafkascope.lake.write.commit import commit, open_table
from kafkascope.lake.write.files import Files
from kafkascope.lake.write.heartbeat import begin, end
from kafkascope.lake.write.replace import replace
from tests.lake.build import CAPTURES, NOON, capture, written
from tests.support.other_tools import optimize

BEFORE_1970 = datetime(1969, 12, 31, 23, tzinfo=UTC)


def former(name: str) -> LakeTable:
    """The table as format 1 had it."""
    table, names = known_table(name), FORMER_NAMES[name]
    schema = pa.schema([field.with_name(names.get(field.name, field.name)) for field in table.schema])
    return changed(table, schema=schema, time=table.time and names.get(table.time, table.time))


def quarantine(lake: Lake, ingest: str, *rows: tuple[str, datetime | None], prefix: str | None = None) -> None:
    table = former("quarantine")
    files = Files(lake, ingest, prefix)
    schema = pa.schema([field for field in table.file_schema if field.name in ("detail", "at")])
    content = pa.Table.from_pylist([{"detail": detail, "at": at} for detail, at in rows], schema=schema)
    for field in table.file_schema:
        if field.name not in (*content.column_names, "ingest_id"):
            content = content.append_column(field, pa.nulls(len(content), field.type))
    files.add(table, content.append_column("ingest_id", pa.array([ingest] * len(content), pa.string())))
    commit(lake, table, files.close(), f"{ingest}{prefix or ''}")


def landed(lake: Lake, ingest: str) -> None:
    commit(lake, CAPTURES, written(lake, ingest, CAPTURES, capture(ingest)), ingest)


@pytest.fixture
def old(tmp_path: Path) -> Lake:
    """Two ingests, one of them half done, a compacted file, one that another tool made, and a mart."""
    lake = make_lake(tmp_path / "lake")
    quarantine(lake, "i1", ("merged by another tool", NOON))
    quarantine(lake, pending("i1"), ("pending, and merged", NOON))
    quarantine(lake, "dead", ("half done, and merged", NOON))
    optimize(lake.table("quarantine").uri)
    quarantine(lake, "i1", ("compacted", NOON), prefix=COMPACTED)
    quarantine(lake, "i2", ("timeless", None), ("early", BEFORE_1970))
    for ingest in ("i1", "i2"):
        landed(lake, ingest)
    table = former("quorum_events")
    files = Files(lake, "", "mart-1")
    event: dict[str, Any] = {"at": NOON, "kind": "elected", "epoch": 4}
    files.add(table, pa.Table.from_pylist([event], schema=table.schema))
    replace(lake, table, files.close())
    Path(lake.uri, SIGN).write_text(json.dumps({"format": 1, "id": lake.id}))
    return find_lake(lake.uri)


def visible(lake: Lake) -> set[tuple[str, datetime | None, date]]:
    rows = dataset(lake, "quarantine").to_table(columns=["detail", "recorded_at", DATE]).to_pylist()
    assert len(rows) == len({row["detail"] for row in rows})
    return {(row["detail"], row["recorded_at"], row[DATE]) for row in rows}


SHOWN = {
    ("merged by another tool", NOON, NOON.date()),
    ("pending, and merged", NOON, NOON.date()),
    ("compacted", NOON, NOON.date()),
    ("timeless", None, date(1970, 1, 1)),
    ("early", BEFORE_1970, BEFORE_1970.date()),
}


def test_a_reader_says_what_brings_it_up_to_date(old: Lake) -> None:
    with pytest.raises(InputError, match=r"a lake of format 1, .* `kafkascope marts LAKE` or the next ingest"):
        open_lake(old.uri)


def test_the_same_rows_show_under_the_new_names(old: Lake) -> None:
    lake = lake_to_write(old.uri)
    assert (lake.format, lake.id, open_lake(old.uri)) == (LAKE_FORMAT, old.id, lake)
    assert visible(lake) == SHOWN
    (event,) = dataset(lake, "quorum_events").to_table().to_pylist()
    assert (event["occurred_at"], event["kind"], event["epoch"]) == (NOON, "elected", 4)
    for name in ("quarantine", "quorum_events"):
        assert pa.schema(open_table(lake, name).schema().to_arrow()).names == known_table(name).schema.names
    # A half-done ingest stays hidden, and a file's name says whose it is.
    files = active_files(open_table(lake, "quarantine"))
    assert {file.ingest for file in files} == {"i1", pending("i1"), "dead", "i2", None}
    assert not any(file.foreign for file in files)


def test_interrupted_it_goes_on_the_next_time(old: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as cut:
        cut.setattr(module, "sign_of", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            upgraded(old)
    assert find_lake(old.uri).format == 1
    assert visible(upgraded(old)) == SHOWN


def test_rows_that_another_adds_meanwhile_come_along(old: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    write = module._written
    turns: list[str] = []

    def and_another(lake: Lake, *rest: Any) -> Any:
        files = write(lake, *rest)
        if not turns:
            turns.append("added")
            quarantine(lake, "i3", ("late", NOON))
            landed(lake, "i3")
        return files

    monkeypatch.setattr(module, "_written", and_another)
    assert visible(upgraded(old)) == {*SHOWN, ("late", NOON, NOON.date())}


def test_it_waits_for_an_ingest_that_runs(old: Lake) -> None:
    run = begin(old, "i9")
    with pytest.raises(InputError, match=rf"an ingest .* is under way \(process {run.pid} on"):
        upgraded(old)
    end(old, run)
    assert upgraded(old).format == LAKE_FORMAT


def test_every_former_name_belongs_to_a_column() -> None:
    for name, columns in FORMER_NAMES.items():
        schema = known_table(name).schema
        assert set(columns) <= set(schema.names) and not set(columns.values()) & set(schema.names)


def test_times_end_in_at_and_no_column_has_two_names() -> None:
    for name in MARTS:
        times = [field.name for field in known_table(name).schema if pa.types.is_timestamp(field.type)]
        assert all(time.endswith("_at") for time in times), name
