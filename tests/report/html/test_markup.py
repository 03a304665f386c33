"""Markup: what comes from the wire is text, wherever it stands."""

import pytest

from kafkascope.report.html.markup import Html, el, join
from kafkascope.report.words import interval, iso, lasting, printable, share, shorten, when
from tests.report.build import HOSTILE, MINUTE, NOON, SECOND


def test_text_and_attributes_are_escaped() -> None:
    made = el("p", HOSTILE, title=HOSTILE).text
    assert "<script" not in made and "\x1b" not in made and "\u202e" not in made
    assert made.count('"') == 2 + HOSTILE.count('"')  # those of the attribute, and in the text as they are
    assert "&lt;script&gt;" in made and "&amp;amp;" in made


def test_markup_inside_stays_markup_and_text_beside_it_does_not() -> None:
    assert el("p", el("b", "a"), "<b>", None, [1, 2.25]).text == "<p><b>a</b>&lt;b&gt;12.2</p>"


def test_attributes_go_by_their_names_in_html() -> None:
    made = el("input", type="checkbox", checked=True, hidden=False, id=None, aria_label="x", class_="y")
    assert made == Html('<input type="checkbox" checked aria-label="x" class="y">')


def test_coordinates_are_short() -> None:
    assert (
        el("rect", x=1.04, y=-0.01, width=33.333, height=2.0).text
        == '<rect x="1" y="0" width="33.3" height="2"></rect>'
    )


def test_joined_parts_follow_one_another() -> None:
    assert join([el("i", "1"), "<", el("i", "2")]).text == "<i>1</i>&lt;<i>2</i>"


@pytest.mark.parametrize("text", ["orders", "größe", "日本", "a b"])
def test_names_of_any_script_are_shown_as_they_are(text: str) -> None:
    assert printable(text) == text


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
    assert (when(2**62), iso(2**62)) == ("unknown", None)


@pytest.mark.parametrize(
    ("part", "whole", "words"), [(0, 9, "0 %"), (1, 10_000, "< 0.1 %"), (1, 8, "12 %"), (1, 0, "–")]
)
def test_a_share_of_something_is_never_nothing(part: int, whole: int, words: str) -> None:
    assert share(part, whole) == words
