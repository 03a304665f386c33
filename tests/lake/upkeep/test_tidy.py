"""Files that left the tables are deleted at the end of ingests, as late and as rarely as the policy says."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kafkascope.errors import InputError
from kafkascope.lake.home import SIGN, Lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.upkeep import tidy as module
from kafkascope.lake.upkeep.compact import compact
from kafkascope.lake.upkeep.retention import half_done
from kafkascope.lake.upkeep.tidy import NOTE, tidy_if_due
from tests.lake.build import exchanges, half_land, land, on_disk

DAY, NOW = timedelta(days=1), timedelta(0)


def aged(lake: Lake, by: timedelta) -> None:
    """The lake began that long ago."""
    sign = Path(lake.place.path, SIGN)
    then = sign.stat().st_mtime - by.total_seconds()
    os.utime(sign, (then, then))


def merged(lake: Lake, ingests: int) -> None:
    """Small files of one day, which became one."""
    for number in range(ingests):
        land(lake, f"i{number}", exchanges([f"e{number}"]))
    assert compact(lake, ["exchanges"], most_small=2)


def ids(lake: Lake) -> list[str]:
    return sorted(dataset(lake, "exchanges").to_table().column("exchange_id").to_pylist())


def test_a_new_lake_has_nothing_to_delete_and_looks_at_nothing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    merged(lake, 4)
    looks: list[timedelta] = []
    monkeypatch.setattr(module, "delete_unnamed", lambda _, age: looks.append(age))
    assert tidy_if_due(lake, DAY) is None and looks == []


def test_what_was_merged_is_deleted_once_it_is_old_enough_and_not_before(lake: Lake) -> None:
    merged(lake, 4)
    before = len(on_disk(lake, "exchanges"))
    aged(lake, 2 * DAY)
    done = tidy_if_due(lake, DAY)
    assert done is not None and (done.deleted_files, done.waiting_files) == (0, 4)
    assert len(on_disk(lake, "exchanges")) == before
    done = tidy_if_due(lake, NOW)
    assert done is not None and (done.deleted_files, done.waiting_files) == (4, 0) and done.deleted_bytes > 0
    assert len(on_disk(lake, "exchanges")) == before - 4
    assert ids(lake) == ["e0", "e1", "e2", "e3"]


def test_it_is_done_again_only_after_as_long_as_files_stay(lake: Lake) -> None:
    merged(lake, 3)
    aged(lake, 2 * DAY)
    now = datetime.now(UTC)
    due = [tidy_if_due(lake, DAY, now + hours * timedelta(hours=1)) is not None for hours in (0, 1, 23, 24, 47, 48)]
    assert due == [True, False, False, True, False, True]


@pytest.mark.parametrize(
    "note",
    ["", "[]", '{"at": null}', '{"at": "soon"}', '{"at": "9999-12-31T23:59:59+00:00"}', "\xff", '{"at": "1970"}'],
)
def test_a_note_of_somebody_else_does_not_keep_it_from_being_done(lake: Lake, note: str) -> None:
    merged(lake, 3)
    Path(lake.place.path, NOTE).write_bytes(note.encode("latin-1"))
    done = tidy_if_due(lake, DAY)
    assert done is not None and done.deleted_files == 0
    at = json.loads(Path(lake.place.path, NOTE).read_text())["at"]
    assert abs(datetime.fromisoformat(at) - datetime.now(UTC)) < timedelta(minutes=5)


def test_rows_of_an_ingest_that_died_stay_for_the_same_ingest_to_complete(lake: Lake) -> None:
    land(lake, "i1", exchanges(["a"]))
    half_land(lake, "i2", exchanges(["b"]))
    before = on_disk(lake, "exchanges")
    assert tidy_if_due(lake, NOW) is not None
    assert on_disk(lake, "exchanges") == before
    assert [left.ingest_id for left in half_done(lake)] == ["i2"]


def test_a_store_that_refuses_is_no_reason_to_fail(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    merged(lake, 3)

    def refuse(*_: object) -> Iterator[None]:
        raise InputError("no")

    monkeypatch.setattr(module, "delete_unnamed", refuse)
    assert tidy_if_due(lake, NOW) is None and not Path(lake.place.path, NOTE).exists()
