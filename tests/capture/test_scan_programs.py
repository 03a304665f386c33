"""Programs of the scan are compiled once a process, and what one reader works with no other changes."""

import numpy as np
import pytest

from kafkascope.capture.frames.scan_program import NO_PROGRAM, NOT_COMPILED, REQUEST, RESPONSE, ScanPrograms


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has read nothing yet."""
    entry, operations, tags = ScanPrograms._latest
    empty = (np.full_like(entry, NOT_COMPILED), operations[:0], tags[:1])
    monkeypatch.setattr(ScanPrograms, "_latest", empty)


def need(programs: ScanPrograms, *pairs: tuple[int, int]) -> None:
    keys, versions = zip(*pairs, strict=True)
    programs.need(np.array(keys), np.array(versions))


@pytest.mark.usefixtures("unknown")
def test_what_one_has_compiled_the_next_begins_with(monkeypatch: pytest.MonkeyPatch) -> None:
    first = ScanPrograms()
    need(first, (3, 1), (1, 12))
    monkeypatch.setattr(ScanPrograms, "_compile", None)
    second = ScanPrograms()
    need(second, (1, 12), (3, 1))
    assert second.operations is first.operations
    assert (second.entry[:, [1, 3], [12, 1]] >= 0).all()


@pytest.mark.usefixtures("unknown")
def test_one_that_is_under_way_finds_what_another_compiled_since(monkeypatch: pytest.MonkeyPatch) -> None:
    early, other = ScanPrograms(), ScanPrograms()
    need(other, (3, 1))
    monkeypatch.setattr(ScanPrograms, "_compile", None)
    need(early, (3, 1))
    assert early.operations is other.operations


@pytest.mark.usefixtures("unknown")
def test_arrays_that_a_kernel_may_be_reading_stay_as_they_are() -> None:
    reading = ScanPrograms()
    need(reading, (3, 1))
    held = reading.entry, reading.operations, reading.tags
    before = [array.copy() for array in held]
    for writer in (reading, ScanPrograms()):
        need(writer, (3, 1), (0, 9), (18, 3))
        assert writer.entry[REQUEST, 0, 9] >= 0 and writer.entry[RESPONSE, 18, 3] >= 0
    assert all(np.array_equal(array, was) for array, was in zip(held, before, strict=True))


@pytest.mark.usefixtures("unknown")
def test_two_that_compile_beside_each_other_each_keep_their_own() -> None:
    first, second = ScanPrograms(), ScanPrograms()
    need(first, (3, 1))
    # As if `one` had not been there when this one looked.
    ScanPrograms._latest = np.full_like(first.entry, NOT_COMPILED), first.operations[:0], first.tags[:1]
    need(second, (1, 12))
    need(first, (3, 1))
    assert first.entry[REQUEST, 3, 1] == 0 and second.entry[REQUEST, 1, 12] == 0
    need(second, (3, 1))
    assert second.entry[REQUEST, 3, 1] > 0


@pytest.mark.usefixtures("unknown")
def test_what_the_catalog_does_not_know_is_asked_once_and_what_no_array_holds_never() -> None:
    programs = ScanPrograms()
    need(programs, (250, 3), (3, 60), (-1, 0), (3, -1), (300, 0), (0, 64))
    assert programs.entry[REQUEST, 250, 3] == programs.entry[RESPONSE, 3, 60] == NO_PROGRAM
    assert (programs.entry != NOT_COMPILED).sum() == 4
