"""Moments between microseconds, datetimes and text."""

from datetime import UTC, datetime

import pytest

from kafkascope.times import iso, iso_of, microseconds_of, moment_of, parse_moment, readable

MOMENT = datetime(2026, 11, 15, 9, 30, 0, 250_000, UTC)


def test_a_moment_is_the_same_after_its_microseconds() -> None:
    assert moment_of(microseconds_of(MOMENT)) == MOMENT


def test_microseconds_that_no_calendar_has_are_no_moment() -> None:
    assert (moment_of(2**63 - 1), moment_of(-(2**63))) == (None, None)


def test_iso_text_ends_with_z_and_is_read_back() -> None:
    assert iso(MOMENT) == "2026-11-15T09:30:00.250000Z"
    assert iso(MOMENT, "seconds") == "2026-11-15T09:30:00Z"
    assert parse_moment(iso(MOMENT)) == MOMENT


def test_an_unknown_time_and_one_outside_the_calendar_have_no_text() -> None:
    assert (iso_of(microseconds_of(MOMENT)), iso_of(None), iso_of(2**63 - 1)) == (iso(MOMENT), None, None)


@pytest.mark.parametrize(
    ("digits", "text"),
    [(0, "2026-11-15 09:30:00"), (3, "2026-11-15 09:30:00.250"), (6, "2026-11-15 09:30:00.250000")],
)
def test_people_read_a_time_with_as_many_digits_as_they_need(digits: int, text: str) -> None:
    assert readable(MOMENT, digits) == text


@pytest.mark.parametrize(
    "text", ["2026-11-15 09:30:00.25", "2026-11-15T10:30:00.25+01:00", " 2026-11-15T09:30:00.250Z "]
)
def test_a_time_without_a_zone_is_utc(text: str) -> None:
    assert parse_moment(text) == MOMENT


@pytest.mark.parametrize("text", ["", "-", "noon", "2026-13-01", "9999-12-31T23:59:59-12:00"])
def test_other_text_is_no_time(text: str) -> None:
    assert parse_moment(text) is None
