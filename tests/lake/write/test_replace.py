"""A mart is replaced whole: readers see what was or what is, and two at once leave the rows of one."""

import pytest

from kafkascope.lake.home import Lake
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.tables import LakeTable
from kafkascope.lake.write import replace as module
from kafkascope.lake.write.commit import open_or_create
from kafkascope.lake.write.files import Files, NewFile
from kafkascope.lake.write.replace import replace
from tests.lake.build import EXCHANGES, exchanges, seen


def files(lake: Lake, *names: str) -> list[NewFile]:
    made = Files(lake, "", "mart-1")
    made.add(EXCHANGES, exchanges(names))
    return made.close()


def test_new_rows_stand_in_the_place_of_the_old(lake: Lake) -> None:
    for names in (("a", "b"), ("c",), (), ("d",)):
        replace(lake, EXCHANGES, files(lake, *names))
        assert seen(lake) == list(names)


@pytest.mark.parametrize("before", [None, (), ("a",)])
def test_two_at_once_leave_the_rows_of_one(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, before: tuple[str, ...] | None
) -> None:
    if before is not None:
        replace(lake, EXCHANGES, files(lake, *before))
    turns: list[int] = []

    def and_another(lake: Lake, table: LakeTable) -> object:
        """Another replaces it between this one's look at the table and its commit."""
        turns.append(1)
        try:
            return open_or_create(lake, table)
        finally:
            if len(turns) == 1:
                replace(lake, EXCHANGES, files(lake, "other"))

    monkeypatch.setattr(module, "open_or_create", and_another)
    replace(lake, EXCHANGES, files(lake, "mine"))
    assert seen(lake) == ["mine"]


def test_reader_that_began_before_reads_on(lake: Lake) -> None:
    replace(lake, EXCHANGES, files(lake, "a"))
    reader = dataset(lake, "exchanges")
    replace(lake, EXCHANGES, files(lake, "b"))
    assert reader.to_table().column("exchange_id").to_pylist() == ["a"]
