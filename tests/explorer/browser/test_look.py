"""The look of the pages in Chromium: type, colours, hex rows, cards, the home page's ways in."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.explorer.browser.conftest import Tab

SHARE_FETCH = "message/ShareFetchRequest/2.html"
STYLE = "([selector, name]) => getComputedStyle(document.querySelector(selector))[name]"


def style(tab: Tab, selector: str, name: str) -> str:
    value: str = tab.page.evaluate(STYLE, [selector, name])
    return value


def test_identifiers_are_in_mono_and_words_are_not(tab: Tab) -> None:
    for path, selectors in {
        SHARE_FETCH: ("h1", "code", ".field b", ".cell .name", ".bytes", ".errors a"),
        "index.html": (".families a", ".json"),
        "changelog/Fetch.html": ("code",),
        "docs/check.html": ("code", ".code pre"),
    }.items():
        tab.open(path)
        for selector in selectors:
            assert "mono" in style(tab, f"main {selector}", "fontFamily"), (path, selector)
        assert "mono" not in style(tab, "main p", "fontFamily")


def test_headings_are_a_scale(tab: Tab) -> None:
    for path in (SHARE_FETCH, "docs/findings.html"):
        tab.open(path)
        sizes = [float(style(tab, f"main {tag}", "fontSize").removesuffix("px")) for tag in ("h1", "h2", "h3", "p")]
        assert sizes == sorted(sizes, reverse=True)
        assert len(set(sizes)) == len(sizes)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_bytes_have_their_offset_their_ascii_and_a_colour_by_type(tabs: Callable[..., Tab], scheme: str) -> None:
    tab = tabs(color_scheme=scheme)
    tab.open(SHARE_FETCH)
    rows = tab.page.locator("#example-hex p")
    assert [row.get_attribute("data-at") for row in rows.all()[:3]] == ["0000", "0010", "0020"]
    content = "one => [getComputedStyle(one, '::before').content, getComputedStyle(one, '::after').content]"
    at, text = rows.nth(1).evaluate(content)
    assert "data-at" in at or "0010" in at
    assert "data-as" in text or "eckout" in text
    assert rows.first.evaluate("one => one.getBoundingClientRect().height") < 30
    looks = {}
    for path in ("groupId", "topics[0].topicId", "isRenewAck", "maxWaitMs"):
        border = "one => getComputedStyle(one).borderBottomColor"
        looks[path] = tab.page.locator(f'#example-hex [data-p="{path}"]').last.evaluate(border)
    assert len(set(looks.values())) == 4, looks


@pytest.mark.parametrize("width", [900, 1100, 1440])
def test_a_row_of_sixteen_bytes_stays_one_line(tabs: Callable[..., Tab], width: int) -> None:
    tab = tabs(width=width)
    tab.open(SHARE_FETCH)
    heights = tab.page.evaluate("[...document.querySelectorAll('#example-hex p')].map((row) => row.offsetHeight)")
    assert max(heights) < 30


@pytest.mark.parametrize("width", [768, 1440])
def test_names_in_tables_stay_whole(tabs: Callable[..., Tab], width: int) -> None:
    tab = tabs(width=width)
    for path, selector in (("lake/exchanges.html?api=ShareFetch", "td.id"), ("kip/932.html", "td.id a")):
        tab.open(path)
        heights = tab.page.evaluate(
            """selector => [...document.querySelectorAll(selector)].map((cell) => {
                const held = document.createRange();
                held.selectNodeContents(cell);
                return held.getBoundingClientRect().height;
            })""",
            selector,
        )
        assert len(heights) > 5
        assert max(heights) < 45, path


def test_one_colour_marks_what_one_can_do(tab: Tab) -> None:
    colours = set()
    for path in ("index.html", "decode.html", "upgrades.html", "lake/exchanges.html"):
        tab.open(path)
        for button in tab.page.locator(".action, main button[type=submit]").all():
            colours.add(button.evaluate("one => getComputedStyle(one).backgroundColor"))
    assert len(colours) == 1


def test_versions_are_pills(tab: Tab) -> None:
    for path, selector in ((SHARE_FETCH, ".versions a"), ("api/ShareFetch.html", "a.pill")):
        tab.open(path)
        assert float(style(tab, selector, "borderTopLeftRadius").removesuffix("px")) > 10


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_cards_of_families_are_full(tabs: Callable[..., Tab], width: int) -> None:
    tab = tabs(width=width)
    tab.open("index.html")
    empty = tab.page.evaluate(
        """() => [...document.querySelectorAll(".families .card")].map((card) =>
            card.getBoundingClientRect().bottom - card.querySelector("li:last-child").getBoundingClientRect().bottom)"""
    )
    assert len(empty) > 5
    assert max(empty) < 24


def test_the_home_page_has_one_line_an_example_three_ways_in_and_the_verdict(tab: Tab) -> None:
    tab.open("index.html")
    expect(tab.page.locator(".lead")).to_contain_text("reference, a decoder and traffic analysis")
    expect(tab.page.locator(".verdict .badge")).to_have_text("attention")
    assert tab.page.locator(".ways h2").all_inner_texts() == ["Look it up", "Decode bytes", "Analyse traffic"]
    assert tab.page.locator(".ways .action").count() == 3
    tab.page.locator("#example-hex [data-p=key]").last.hover()
    expect(tab.page.locator("#example-json [data-p=key]")).to_have_class(re.compile("lit"))


def test_the_mark_and_the_navigation_are_on_every_kind_of_page(tab: Tab) -> None:
    names = ["APIs", "Releases", "Upgrades", "Errors", "Records", "Batches", "Decode", "Manual", "Lake"]
    for path in (
        "index.html",
        SHARE_FETCH,
        "docs/check.html",
        "lake/exchanges.html",
        "lake/report.html",
        "nowhere.html",
    ):
        tab.open(path)
        assert tab.page.get_by_role("navigation", name="Site").get_by_role("link").all_inner_texts() == names
        mark = tab.page.locator(".brand").evaluate("one => getComputedStyle(one, '::before').backgroundImage")
        assert "gradient" in mark


def test_identical_error_lists_of_several_fields_are_one(tab: Tab) -> None:
    tab.open("message/ShareFetchRequest/2.html")
    lists = [tuple(part.locator("a").all_inner_texts()) for part in tab.page.locator("#errors ul").all()]
    assert len(lists) == len(set(lists)) > 0


def test_a_kip_has_its_title_and_a_link_to_the_proposal(tab: Tab) -> None:
    tab.open("kip/932.html")
    expect(tab.page.locator("h1")).to_have_text("KIP-932: Queues for Kafka")
    assert "KIP-932" in str(tab.page.locator("main .prose a").get_attribute("href"))
