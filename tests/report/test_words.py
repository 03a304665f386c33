"""Times and numbers as the report has them."""

import pytest

from kafkascope.report.words import interval, lasting, share, shorten, when
from tests.report.build import MINUTE, NOON, SECOND


def test_long_names_keep_both_ends() -> None:
    assert shorten("first-StreamThread-1-consumer", 12) == "first-S…umer"
    assert shorten("orders", 6) == "orders"


def test_an_interval_names_its_day_once_and_no_time_twice() -> None:
    assert interval(NOON, NOON + SECOND, SECOND) == "15 Nov 2026 12:00:00 – 12:00:01"
    assert interval(NOON, NOON + 5, SECOND) == "15 Nov 2026 12:00:00"
    assert interval(NOON, NOON + 86_400 * SECOND, MINUTE) == "15 Nov 2026 12:00 – 16 Nov 2026 12:00"
    assert interval(None, None) == "unknown"


@pytest.mark.parametrize(
    ("microseconds", "words"), [(0, "0 s"), (87, "87 µs"), (4_000, "4 ms"), (4_234_000, "4.2 s"), (None, "–")]
)
def test_lengths_have_a_unit_that_fits(microseconds: int | None, words: str) -> None:
    assert lasting(microseconds) == words


def test_a_time_that_no_calendar_has_is_unknown() -> None:
    assert when(2**62) == "unknown"


@pytest.mark.parametrize(
    ("part", "whole", "words"), [(0, 9, "0 %"), (1, 10_000, "less than 0.1 %"), (1, 8, "12 %"), (1, 0, "–")]
)
def test_a_share_of_something_is_never_nothing(part: int, whole: int, words: str) -> None:
    assert share(part, whole) == words
