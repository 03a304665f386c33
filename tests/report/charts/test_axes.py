"""Steps, ticks and scales: never too many, at round times, and nothing outside of the picture."""

import random
import re

import pytest

from kafkascope.report.charts.axes import BREAK, WIDTH, TimeScale, ValueScale, short, time_axis, time_ticks, value_ticks
from kafkascope.report.summaries.buckets import buckets_of
from tests.report.build import MINUTE, NOON, SECOND

LENGTHS = [0, 1, 999, 1_000, SECOND, 61 * SECOND, 86_400 * SECOND, 400 * 86_400 * SECOND, 2**61]


@pytest.mark.parametrize("most", [3, 60, 160])
@pytest.mark.parametrize("length", LENGTHS)
def test_steps_are_at_most_so_many_and_hold_both_ends(length: int, most: int) -> None:
    for start in random.Random(length).sample(range(NOON, NOON + 10 * MINUTE), 20):
        buckets = buckets_of(start, start + length, most)
        assert 1 <= buckets.count <= most
        assert buckets.first_at <= start and start + length < buckets.last_at
        assert buckets.first_at % buckets.step_us == 0


def test_ticks_stand_at_round_times_of_utc() -> None:
    assert time_ticks(NOON + 400_000, NOON + 10 * SECOND)[:2] == [
        (NOON + 2 * SECOND, "12:00:02"),
        (NOON + 4 * SECOND, "12:00:04"),
    ]


def test_midnight_is_told_by_its_day() -> None:
    labels = [label for _, label in time_ticks(NOON, NOON + 86_400 * SECOND)]
    assert labels == ["12:00", "18:00", "16 Nov", "06:00", "12:00"]


def test_fractions_of_a_second_are_told_where_ticks_are_that_close() -> None:
    assert [label for _, label in time_ticks(NOON, NOON + 40_000)][1] == "12:00:00.010"


def test_no_time_is_cut_at_the_edge() -> None:
    drawn = "".join(part.text for part in time_axis(TimeScale(NOON, NOON + 40_000, 58), 0, 100))
    ends = re.findall(r'<text x="([\d.]+)"[^>]* class="tick"[^>]*>([^<]+)<', drawn)
    assert len(ends) == 5 and all(float(middle) + len(label) * 6.5 / 2 <= WIDTH for middle, label in ends)


@pytest.mark.parametrize("length", LENGTHS)
def test_ticks_are_few(length: int) -> None:
    assert len(time_ticks(NOON, NOON + length)) <= 9


@pytest.mark.parametrize(
    ("largest", "whole", "ticks"),
    [
        (0, True, [0, 1]),
        (1, True, [0, 1]),
        (3, True, [0, 1, 2, 3]),
        (21, True, [0, 10, 20, 30]),
        (999, True, [0, 500, 1000]),
        (0.35, False, [0, 0.1, 0.2, 0.3, 0.4]),
    ],
)
def test_value_ticks_are_round_and_reach_the_largest(largest: float, whole: bool, ticks: list[float]) -> None:
    assert value_ticks(largest, 4, whole) == pytest.approx(ticks)


def test_large_values_are_short_and_no_powers() -> None:
    assert [short(value) for value in (0, 0.5, 250_000, 1_500_000, 5e8, 1.5e9, 2e12, 4e18)] == [
        "0", "0.5", "250,000", "1.5 M", "500 M", "1.5 G", "2 T", "4,000 P",
    ]  # fmt: skip


def test_times_and_values_outside_stay_in_the_picture() -> None:
    times = TimeScale(NOON, NOON + SECOND, 100, 200)
    assert [times.x(at) for at in (NOON - SECOND, NOON, NOON + SECOND // 2, NOON + 9 * SECOND)] == [100, 100, 150, 200]
    values = ValueScale(10, 20, 120)
    assert [values.y(value) for value in (0, 5, 10, 99)] == [120, 70, 20, 20]


def test_a_moment_without_length_has_a_place() -> None:
    assert TimeScale(NOON, NOON, 100, 200).x(NOON) == 100
    assert ValueScale(0, 20, 120).y(0) == 120


def test_a_break_has_a_width_of_its_own_and_each_stretch_its_times() -> None:
    hour = 3_600 * SECOND
    scale = TimeScale(NOON, NOON + 4 * hour, 100, breaks=((NOON + 60 * SECOND, NOON + 4 * hour - 60 * SECOND),))
    begins, ends = (scale.x(at) for at in scale.breaks[0])
    assert ends - begins == pytest.approx(BREAK)
    assert begins - scale.left == pytest.approx(scale.right - ends)
    assert [scale.x(NOON), scale.x(NOON + 4 * hour)] == pytest.approx([scale.left, scale.right])
    axis = "".join(part.text for part in time_axis(scale, 0, 10))
    assert ">12:00:00<" in axis and ">16:00:00<" in axis


def test_a_stretch_too_short_for_a_round_time_has_its_beginning() -> None:
    breaks = ((NOON + 7 * SECOND, NOON + 7_000 * SECOND),)
    axis = "".join(
        part.text for part in time_axis(TimeScale(NOON + SECOND, NOON + 8_000 * SECOND, 0, breaks=breaks), 0, 1)
    )
    assert ">12:00:01<" in axis


def test_the_first_time_after_a_break_has_its_day_if_it_is_another() -> None:
    days = 86_400 * SECOND
    scale = TimeScale(NOON, NOON + days, 0, breaks=((NOON + 60 * SECOND, NOON + days - 60 * SECOND),))
    axis = "".join(part.text for part in time_axis(scale, 0, 1))
    assert ">12:00:00<" in axis and re.search(r">16 Nov 11:59:\d\d<", axis)
    assert axis.count("16 Nov") == 2  # the other is the axis's
