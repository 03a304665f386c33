"""The reference in Chromium: search by keyboard, versions, linked bytes, diff, themes; and all of it without script."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from kafkascope.explorer.facts.search.find import search
from tests.explorer.browser.conftest import Tab
from tests.explorer.facts.test_search import ASKED, FIRST, OTHERS

SHARE_FETCH = "message/ShareFetchRequest/2.html"


@pytest.mark.parametrize(
    ("typed", "steps", "name_wanted"),
    [
        ("sharefetch", 0, "api/ShareFetch.html"),
        ("INVALID_RECORD_STATE", 0, "error/INVALID_RECORD_STATE.html"),
        ("kip-932", 0, "kip/932.html"),
        ("4.3", 0, "release/4.3.html"),
        ("78", 0, "api/ShareFetch.html"),
        ("fetch", 1, "api/FetchSnapshot.html"),
    ],
)
def test_search_by_keyboard_alone_leads_to_the_page(tab: Tab, typed: str, steps: int, name_wanted: str) -> None:
    tab.open("errors.html")
    tab.page.keyboard.press("/")
    box = tab.page.locator("#seek")
    expect(box).to_be_focused()
    tab.page.keyboard.type(typed)
    results = tab.page.locator("#seek-found li")
    expect(results.first).to_be_visible()
    for _ in range(steps):
        tab.page.keyboard.press("ArrowDown")
    chosen = tab.page.locator("#seek-found li[aria-selected=true]")
    expect(chosen).to_have_count(1)
    assert box.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url(f"**/{name_wanted}")
    expect(tab.page.locator("h1")).to_be_visible()


def test_search_closes_with_escape_and_says_when_there_is_nothing(tab: Tab) -> None:
    tab.open("index.html")
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("sharefetch")
    results = tab.page.locator("#seek-found")
    expect(results).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(results).to_be_hidden()
    tab.page.locator("#seek").fill("<img src=x onerror=alert(1)>")
    expect(results).to_have_text("no results for this name or number")
    assert tab.page.locator("img").count() == 0


def test_a_slash_in_a_text_field_is_a_slash(tab: Tab) -> None:
    tab.open("decode.html")
    tab.page.locator("#data").focus()
    tab.page.keyboard.press("/")
    assert tab.page.locator("#data").input_value() == "/"


def test_versions_are_switched_by_their_links(tab: Tab) -> None:
    tab.open(SHARE_FETCH)
    versions = tab.page.get_by_role("navigation", name="Versions of ShareFetchRequest")
    expect(versions.locator("[aria-current=page]")).to_have_text("v2")
    versions.get_by_role("link", name="v1", exact=True).click()
    tab.page.wait_for_url("**/message/ShareFetchRequest/1.html")
    expect(tab.page.locator("h1")).to_contain_text("v1")
    expect(versions.locator("[aria-current=page]")).to_have_text("v1")


def test_pointing_at_a_byte_lights_its_line_and_its_cell_and_back(tab: Tab) -> None:
    tab.open(SHARE_FETCH)
    byte = tab.page.locator("#example-hex [data-p=memberId]").last
    line = tab.page.locator("#example-json [data-p=memberId]")
    byte.hover()
    expect(byte).to_have_class(re.compile("lit"))
    expect(line).to_have_class(re.compile("lit"))
    expect(tab.page.locator(".cell.lit")).to_have_count(1)
    expect(tab.page.locator(".told")).to_contain_text("memberId")
    tab.page.locator("#example-json [data-p=groupId]").hover()
    expect(line).not_to_have_class(re.compile("lit"))
    expect(tab.page.locator("#example-hex [data-p=groupId]").last).to_have_class(re.compile("lit"))


def test_the_arrow_keys_go_from_byte_to_byte(tab: Tab) -> None:
    tab.open(SHARE_FETCH)
    bytes_ = tab.page.locator("#example-hex [data-p]")
    bytes_.first.focus()
    legend = tab.page.locator(".told")
    expect(bytes_.first).to_have_class(re.compile("lit"))
    first = legend.text_content()
    tab.page.keyboard.press("ArrowRight")
    expect(bytes_.nth(1)).to_be_focused()
    expect(bytes_.nth(1)).to_have_class(re.compile("lit"))
    assert legend.text_content() != first
    tab.page.keyboard.press("End")
    expect(bytes_.last).to_be_focused()
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.closest('#example-hex')") is None


def test_a_diff_shows_both_sides_and_leads_to_other_pairs(tab: Tab) -> None:
    tab.open("diff/ShareFetchRequest/0-2.html")
    rows = tab.page.locator("table.sides tbody tr")
    assert tab.page.locator("table.sides tr.added").count() > 0
    assert rows.count() > 5
    tab.page.get_by_role("navigation", name="Other pairs of versions").get_by_role("link", name="v1").first.click()
    tab.page.wait_for_url(re.compile(r"/diff/ShareFetchRequest/\d-\d\.html"))
    assert tab.page.locator("h1").is_visible()


def test_the_field_names_of_a_diff_stay_whole_on_a_phone(tabs: Callable[..., Tab]) -> None:
    tab = tabs(width=390)
    tab.open("diff/FetchRequest/16-17.html")
    heights = tab.page.evaluate(
        """() => [...document.querySelectorAll(".sides tbody th")].map((name) => {
            const held = document.createRange();
            held.selectNodeContents(name);
            return held.getBoundingClientRect().height;
        })"""
    )
    assert heights
    assert max(heights) < 30


def test_the_switch_of_themes_holds_on_the_next_page(tabs: Callable[..., Tab]) -> None:
    tab = tabs(color_scheme="light")
    tab.open("index.html")
    colour = "getComputedStyle(document.body).backgroundColor"
    light = tab.page.evaluate(colour)
    tab.page.get_by_role("button", name="Dark theme").click()
    dark = tab.page.evaluate(colour)
    assert dark != light
    tab.open("errors.html")
    assert tab.page.evaluate(colour) == dark
    tab.page.get_by_role("button", name="Light theme").click()
    assert tab.page.evaluate(colour) == light


def test_what_is_copied_is_the_hex_of_the_example(tabs: Callable[..., Tab]) -> None:
    tab = tabs(permissions=["clipboard-read", "clipboard-write"])
    tab.open(SHARE_FETCH)
    tab.page.get_by_role("button", name="Copy hex").click()
    expect(tab.page.get_by_role("button", name="Copied")).to_be_visible()
    example_hex = tab.facts(SHARE_FETCH.replace(".html", ".json"))["example"]["hex"]
    assert tab.page.evaluate("navigator.clipboard.readText()") == example_hex


def test_search_works_without_script(tabs: Callable[..., Tab]) -> None:
    tab = tabs(java_script_enabled=False)
    tab.open("index.html")
    tab.page.locator("#seek").fill("ShareFetch")
    tab.page.keyboard.press("Enter")
    tab.page.get_by_role("link", name="ShareFetch", exact=True).first.click()
    tab.page.wait_for_url("**/api/ShareFetch.html")


def test_the_static_site_works_from_disk(tabs: Callable[..., Tab], whole_site: Path) -> None:
    tab = tabs()
    tab.base = whole_site.as_uri() + "/"
    tab.page.goto(f"{tab.base}index.html")
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("sharefetch")
    expect(tab.page.locator("#seek-found li").first).to_be_visible()
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**/api/ShareFetch.html")
    tab.page.goto(f"{tab.base}{SHARE_FETCH}")
    tab.page.locator("#example-hex [data-p=memberId]").last.hover()
    expect(tab.page.locator("#example-json [data-p=memberId]")).to_have_class(re.compile("lit"))


@pytest.mark.parametrize("keys", ["Control+k", "Meta+k", "/"])
def test_keys_lead_to_the_search_from_anywhere(tab: Tab, keys: str) -> None:
    tab.open(SHARE_FETCH)
    tab.page.keyboard.press(keys)
    expect(tab.page.locator("#seek")).to_be_focused()


def test_control_k_leaves_a_text_field_for_the_search(tab: Tab) -> None:
    tab.open("decode.html")
    tab.page.locator("#data").focus()
    tab.page.keyboard.press("Control+k")
    expect(tab.page.locator("#seek")).to_be_focused()
    assert tab.page.locator("#data").input_value() == ""


@pytest.mark.parametrize(
    ("typed", "there"),
    [
        ("ShareFetchRequest:1", "message/ShareFetchRequest/1.html"),
        ("fetch v12", "message/FetchRequest/12.html"),
        ("shrefetch", "api/ShareFetch.html"),
        ("queues for kafka", "kip/932.html"),
        ("__consumer_offsets", "records.html#groups"),
    ],
)
def test_search_takes_versions_titles_topics_and_typos(tab: Tab, typed: str, there: str) -> None:
    tab.open("index.html")
    tab.page.locator("#seek").fill(typed)
    expect(tab.page.locator("#seek-found li").first).to_be_visible()
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url(f"**/{there}")


def test_the_search_of_the_browser_is_that_of_the_server(tab: Tab) -> None:
    tab.open("index.html")
    tab.page.locator("#seek").focus()
    tab.page.wait_for_function("() => Boolean(window.kafkascope?.search)")
    queries = [*(query for query, _ in (*ASKED, *FIRST)), *OTHERS]
    results = tab.page.evaluate("queries => queries.map((query) => window.kafkascope.search(query))", queries)
    for query, ranked in zip(queries, results, strict=True):
        assert [tuple(row) for row in ranked] == [(e.text, e.about, e.address) for e in search(query)], query


@pytest.mark.parametrize("script", [True, False])
def test_the_forms_of_an_example_are_tabs(tabs: Callable[..., Tab], script: bool) -> None:
    tab = tabs(java_script_enabled=script)
    tab.open(SHARE_FETCH)
    panels = tab.page.locator(".tabs > .panel")
    expect(panels.first).to_be_visible()
    for number, name in enumerate(("Every byte with its field", "kafkascope call", "kafkascope decode"), 1):
        tab.page.locator(".tabs").get_by_text(name, exact=True).first.click()
        expect(panels.nth(number)).to_be_visible()
        expect(panels.first).to_be_hidden()
    tab.page.keyboard.press("ArrowLeft")
    expect(panels.nth(2)).to_be_visible()


def test_headings_and_fields_have_a_link_to_themselves(tab: Tab) -> None:
    tab.open(SHARE_FETCH)
    for name, there in (("Link to wire", "#wire"), ("Link to Topics.TopicId", "#f-Topics.TopicId")):
        tab.page.get_by_role("link", name=name, exact=True).click()
        assert tab.page.url.endswith(there)


@pytest.mark.parametrize("script", [True, False])
def test_any_two_releases_can_be_picked(tabs: Callable[..., Tab], script: bool) -> None:
    tab = tabs(java_script_enabled=script)
    tab.open("upgrades.html")
    tab.page.locator("select[name=a]").select_option("2.4")
    tab.page.locator("select[name=b]").select_option("3.9")
    tab.page.get_by_role("button", name="Compare").click()
    tab.page.wait_for_url("**/upgrade/2.4-3.9.html")
    expect(tab.page.locator("select[name=a]")).to_have_value("2.4")
    expect(tab.page.locator("select[name=b]")).to_have_value("3.9")


def test_the_header_stays_and_is_low(tabs: Callable[..., Tab]) -> None:
    for width in (360, 768, 1440):
        tab = tabs(width=width)
        tab.open(SHARE_FETCH)
        tab.page.evaluate("scrollTo(0, 2000)")
        top = tab.page.locator("#seek").bounding_box()
        assert top is not None
        assert 0 <= top["y"] < 60


def test_a_printed_page_has_every_form_and_no_controls(tab: Tab) -> None:
    tab.open(SHARE_FETCH)
    tab.page.emulate_media(media="print")
    expect(tab.page.locator(".tabs > .panel").last).to_be_visible()
    for gone in ("#seek", "#theme", ".copy", ".site"):
        expect(tab.page.locator(gone).first).to_be_hidden()
