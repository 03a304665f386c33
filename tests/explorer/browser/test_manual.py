"""The manual in Chromium: contents that stay, commands that are copied, tables on a phone, search, and paper."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.explorer.browser.conftest import Tab


def test_the_contents_stay_beside_the_text(tab: Tab) -> None:
    tab.open("docs/commands.html")
    contents = tab.page.get_by_role("navigation", name="On this page")
    contents.get_by_role("link", name="serve", exact=True).click()
    assert tab.page.url.endswith("#serve")
    assert tab.page.evaluate("scrollY") > 5_000
    box = contents.bounding_box()
    assert box is not None
    assert 50 < box["y"] < 150 and box["y"] + box["height"] <= 900


@pytest.mark.parametrize("width", [360, 768])
def test_on_a_narrow_window_the_contents_are_short_and_above_the_text(tabs: Callable[..., Tab], width: int) -> None:
    tab = tabs(width=width)
    tab.open("docs/findings.html")
    contents = tab.page.get_by_role("navigation", name="On this page").bounding_box()
    text = tab.page.locator(".text").bounding_box()
    assert contents is not None and text is not None
    assert contents["height"] < 250
    assert contents["y"] + contents["height"] <= text["y"] + 1


def test_of_a_transcript_the_commands_are_copied(tabs: Callable[..., Tab]) -> None:
    tab = tabs(permissions=["clipboard-read", "clipboard-write"])
    for path, number, text in (
        ("docs/commands.html#decode", 1, None),
        ("docs/python.html", 1, None),
        ("docs/cookbook.html", 1, None),
    ):
        tab.open(path)
        block = tab.page.locator(f"#code-{number}")
        typed = block.locator("b").all_inner_texts()
        expected = "\n".join(typed) if typed else block.inner_text().rstrip()
        block.locator("xpath=..").get_by_role("button", name="Copy").click()
        assert tab.page.evaluate("navigator.clipboard.readText()") == expected
        assert expected and not expected.startswith(("$ ", ">>> ")), text


def test_a_wide_table_scrolls_on_a_phone_and_keeps_its_words_whole(tabs: Callable[..., Tab]) -> None:
    tab = tabs(width=360)
    tab.open("docs/marts.html")
    widths = tab.page.evaluate(
        "[...document.querySelectorAll('.text .scroll')].map((one) => [one.scrollWidth, one.clientWidth])"
    )
    assert any(held > shown for held, shown in widths)
    heights = tab.page.evaluate(
        """() => [...document.querySelectorAll(".text td:first-child > code:only-child")].map((code) =>
            code.getClientRects().length)"""
    )
    assert len(heights) > 50
    assert max(heights) == 1


def test_headings_have_a_link_to_themselves(tab: Tab) -> None:
    tab.open("docs/findings.html")
    tab.page.get_by_role("link", name="Link to share_poison_record", exact=True).click()
    assert tab.page.url.endswith("#share_poison_record")


def test_the_search_leads_to_a_heading_and_the_home_page_to_the_manual(tab: Tab) -> None:
    tab.open("index.html")
    tab.page.locator("#seek").fill("share_lock_expired")
    expect(tab.page.locator("#seek-found li").first).to_be_visible()
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**/docs/findings.html#share_lock_expired")
    tab.open("index.html")
    tab.page.get_by_role("link", name="Install and quick start").click()
    tab.page.wait_for_url("**/docs/README.html")
    pictures = tab.page.locator(".text img")
    expect(pictures).to_have_count(2)
    for picture in pictures.all():
        assert picture.evaluate("one => one.decode().then(() => one.naturalWidth)") > 1_000


def test_the_manual_works_from_disk(tabs: Callable[..., Tab], whole_site: Path) -> None:
    tab = tabs()
    tab.base = whole_site.as_uri() + "/"
    tab.page.goto(f"{tab.base}docs/index.html")
    tab.page.get_by_role("link", name="Findings", exact=True).click()
    tab.page.get_by_role("navigation", name="On this page").get_by_role("link", name="share_moved").click()
    assert tab.page.url.endswith("docs/findings.html#share_moved")
    tab.page.goto(f"{tab.base}docs/README.html")
    assert tab.page.locator(".text img").first.evaluate("one => one.decode().then(() => one.naturalWidth)") > 1_000


def test_on_paper_a_page_is_text_alone(tab: Tab) -> None:
    tab.open("docs/commands.html")
    tab.page.emulate_media(media="print")
    for gone in (".contents", ".turn", ".copy", ".site"):
        expect(tab.page.locator(gone).first).to_be_hidden()
    expect(tab.page.locator(".code pre").first).to_have_css("white-space", "pre-wrap")
