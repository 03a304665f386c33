"""A running ingest has a sign of life that it renews; one that was given up hears it and cannot land."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kafkascope.errors import InputError
from kafkascope.lake.home import Lake
from kafkascope.lake.upkeep.retention import vacuum
from kafkascope.lake.write.heartbeat import (
    INGESTS,
    SILENCE,
    Running,
    _write,
    alive_ingests,
    beat,
    begin,
    end,
    running_ingests,
    seal,
)
from tests.lake.build import CAPTURES, capture, exchanges, half_land, seen, written


def fall_silent(lake: Lake, run: Running) -> Running:
    """As if the driver had last been heard of too long ago."""
    silent = replace(run, beat=datetime.now(UTC) - SILENCE)
    _write(lake, silent)
    return silent


def test_sign_says_who_runs_since_when(lake: Lake) -> None:
    before = datetime.now(UTC)
    run = begin(lake, "i1")
    (runs,) = running_ingests(lake)
    assert runs == run
    assert before <= runs.started <= runs.beat <= datetime.now(UTC)
    assert runs.host and runs.user and runs.pid
    assert alive_ingests(lake) == {"i1"}
    end(lake, run)
    assert running_ingests(lake) == []
    end(lake, run)


def test_beat_renews_it(lake: Lake) -> None:
    run = fall_silent(lake, begin(lake, "i1"))
    assert alive_ingests(lake) == frozenset()
    renewed = beat(lake, run)
    assert renewed.beat > run.beat and renewed.started == run.started
    assert alive_ingests(lake) == {"i1"}


def test_two_runs_of_one_ingest_have_a_sign_each(lake: Lake) -> None:
    first, other = begin(lake, "i1"), begin(lake, "i1")
    end(lake, first)
    assert alive_ingests(lake) == {"i1"}
    beat(lake, other)
    with pytest.raises(InputError, match="removed it"):
        beat(lake, first)


def test_name_with_a_dash_is_refused(lake: Lake) -> None:
    with pytest.raises(AssertionError):
        begin(lake, "i-1")


def test_sign_that_cannot_be_read_is_passed_over(lake: Lake) -> None:
    begin(lake, "i1")
    Path(lake.uri, INGESTS, "broken-1.json").write_text("{")
    assert [run.ingest_id for run in running_ingests(lake)] == ["i1"]


def land_last(lake: Lake, run: Running) -> bool:
    return seal(lake, run, written(lake, run.ingest_id, CAPTURES, capture(run.ingest_id)))


def test_driver_that_wakes_after_a_vacuum_cannot_land(lake: Lake) -> None:
    run = begin(lake, "i1")
    half_land(lake, "i1", exchanges(["a"]))
    fall_silent(lake, run)
    assert vacuum(lake).ingests == ("i1",)
    with pytest.raises(
        InputError, match="ingest i1 was silent for too long, so `lake vacuum` removed it; run it again"
    ):
        land_last(lake, run)
    with pytest.raises(InputError, match="removed it"):
        beat(lake, run)
    assert seen(lake) == []


def test_ingest_that_was_given_up_lands_when_it_is_run_again(lake: Lake) -> None:
    for turn in range(3):
        run = begin(lake, "i1")
        assert run.given_up == 4 * turn
        half_land(lake, "i1", exchanges(["a"]))
        fall_silent(lake, run)
        assert vacuum(lake).ingests == ("i1",)
    run = begin(lake, "i1")
    half_land(lake, "i1", exchanges(["a"]))
    assert land_last(lake, run) is True
    assert land_last(lake, run) is False
    assert seen(lake) == ["a"]


def test_ingest_that_runs_again_completes_what_is_there(lake: Lake) -> None:
    begin(lake, "i1")
    half_land(lake, "i1", exchanges(["a"]))
    again = begin(lake, "i1")
    half_land(lake, "i1", exchanges(["a"]))
    assert land_last(lake, again) is True
    assert seen(lake) == ["a"]
    assert begin(lake, "i1").given_up == 0


def test_silence_is_longer_than_many_beats() -> None:
    from kafkascope.lake.write.heartbeat import BEAT_SECONDS

    assert timedelta(seconds=10 * BEAT_SECONDS) <= SILENCE
