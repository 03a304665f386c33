"""What comes from the wire is text in markup, wherever it stands."""

from kafkascope.markup import Html, el, join
from tests.report.build import HOSTILE


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


def test_a_template_takes_finished_markup_as_it_is() -> None:
    assert el("b", "<").__html__() == "<b>&lt;</b>"
