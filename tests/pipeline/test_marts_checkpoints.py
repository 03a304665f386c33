"""Checkpoints of marts are few and far apart where they are old, and a forged account of a build counts as none."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kafkascope.lake.active import active_files
from kafkascope.lake.home import Lake, make_lake
from kafkascope.lake.marts import KEPT, MART_STATE
from kafkascope.lake.write.commit import open_table
from kafkascope.lake.write.replace import rewrite
from kafkascope.pipeline.mart.increments.changes import Account, Pending
from kafkascope.pipeline.mart.increments.checkpoints import (
    BEGINNING,
    MINUTE_US,
    MOST_SEGMENTS,
    proposed,
    start_of,
    thinned,
)
from kafkascope.pipeline.mart.increments.manifest import Manifest, manifest_file, read_manifest

YEAR = 365 * 24 * 60


def test_checkpoints_of_a_year_of_minutes_are_few_and_some_are_old() -> None:
    kept: list[int] = []
    for minute in range(0, YEAR, 7):
        kept = thinned([*kept, minute * MINUTE_US])
        assert kept[-1] == minute * MINUTE_US and len(kept) < 25
    ages = [(kept[-1] - at) // MINUTE_US for at in kept]
    assert ages[0] > YEAR / 8 and sum(age < 24 * 60 for age in ages) > 5


def test_checkpoints_are_whole_minutes_of_what_is_recorded() -> None:
    times = proposed(10 * MINUTE_US, 100 * MINUTE_US + 5)
    assert times == [38 * MINUTE_US, 98 * MINUTE_US]
    assert proposed(10 * MINUTE_US, 11 * MINUTE_US) == []


def test_a_build_begins_at_the_last_checkpoint_before_what_changed() -> None:
    checkpoints = [10, 20, 30]
    assert [start_of(checkpoints, at, ()) for at in (5, 10, 29, 99)] == [BEGINNING, 10, 20, 30]
    # Many segments since the last one that has enough of them after it are made one.
    many = range(MOST_SEGMENTS + 1)
    assert start_of([10, 20, 60], 99, many) == 20


def account(lake: Lake) -> Manifest:
    known = Account(frozenset({"a"}), {"exchanges": 5}, {"exchanges": {"ap": Pending(1, 7)}}, {"x": frozenset({"f"})})
    manifest = Manifest("rules", known, (MINUTE_US,), (0, MINUTE_US), {"topics": 3}, {"apis": (MINUTE_US,)}, {0: "d"})
    rewrite(lake, KEPT[MART_STATE], lambda _: True, manifest_file(lake, manifest, "run"), (0, 9))
    return manifest


def test_an_account_is_read_as_it_was_written(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake")
    assert read_manifest(lake)[0] is None
    manifest = account(lake)
    assert read_manifest(lake) == (manifest, 9, "")


@pytest.mark.parametrize(
    "change",
    [
        {"checkpoints": [1]}, {"checkpoints": [MINUTE_US, 0]}, {"segments": None}, {"rows": {"x": -1}},
        {"rows": {"x": True}}, {"names": [1]}, {"builds": {"x": 1 << 70}}, {"states": []}, {"before": [[0]]},
        {"rules": 7},
    ],
)  # fmt: skip
def test_a_forged_account_is_none(tmp_path: Path, change: dict[str, Any]) -> None:
    lake = make_lake(tmp_path / "lake")
    account(lake)
    (file,) = active_files(open_table(lake, MART_STATE))
    path = lake.table(MART_STATE).child(file.path).path
    rows = pq.read_table(path)
    value = {**json.loads(rows.column("state")[0].as_py()), **change}
    pq.write_table(rows.set_column(3, rows.schema.field(3), [[json.dumps(value)]]), path)
    manifest, build, reason = read_manifest(lake)
    assert manifest is None and build == 9 and "can't be read" in reason
