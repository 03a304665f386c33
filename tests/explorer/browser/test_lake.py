"""The lake browser in Chromium: from the verdict to the byte, by links and forms alone."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.explorer.browser.conftest import Tab

# What is folded around it.
UNFOLD = "one => { for (; one; one = one.parentElement) if (one.tagName === 'DETAILS') one.open = true; }"


def test_filter_next_page_one_exchange_and_its_bytes(tab: Tab) -> None:
    tab.open("index.html")
    tab.page.get_by_role("navigation", name="Site").get_by_role("link", name="Lake").click()
    tab.page.get_by_role("navigation", name="Lake").get_by_role("link", name="Exchanges").click()
    rows = tab.page.locator("table.list tbody tr")
    expect(rows).to_have_count(100)
    first = rows.first.inner_text()
    tab.page.get_by_role("link", name="Next page").click()
    tab.page.wait_for_url(re.compile("after="))
    assert rows.first.inner_text() != first
    expect(tab.page.get_by_text(re.compile(r"^101–200 of [\d,]+ exchanges$"))).to_be_visible()
    second = rows.first.inner_text()
    tab.page.get_by_role("link", name="Next page").click()
    expect(tab.page.get_by_text(re.compile(r"^201–300 of "))).to_be_visible()
    tab.page.get_by_role("link", name="Previous page").click()
    expect(rows.first).to_have_text(re.compile(re.escape(second.split("\t")[0])))
    tab.page.get_by_role("link", name="Previous page").click()
    expect(rows.first).to_have_text(re.compile(re.escape(first.split("\t")[0])))
    tab.page.get_by_role("link", name="Next page").click()
    tab.page.get_by_role("link", name="First page").click()
    expect(rows.first).to_have_text(re.compile(re.escape(first.split("\t")[0])))
    tab.page.get_by_label("API").select_option("ShareFetch")
    tab.page.get_by_label("Client id").fill("stea*")
    tab.page.get_by_role("button", name="Show").click()
    tab.page.wait_for_url(re.compile("api=ShareFetch&client=stea"))
    for text in rows.all_inner_texts():
        assert "ShareFetch" in text and "steady" in text
    expect(tab.page.get_by_label("API")).to_have_value("ShareFetch")
    rows.first.get_by_role("link").click()
    expect(tab.page.locator("h1")).to_contain_text("ShareFetch")
    expect(tab.page.get_by_text("share_fetch_request", exact=True)).to_be_visible()
    tab.page.get_by_role("link", name="Its bytes, re-read from the recording").click()
    expect(tab.page.locator("h1")).to_contain_text("byte by byte")
    byte = tab.page.locator("#request-hex [data-p=memberId]").last
    byte.hover()
    expect(tab.page.locator("#request-json [data-p=memberId]")).to_have_class(re.compile("lit"))
    expect(tab.page.locator("#request-json ~ *, .told").first).to_be_visible()


@pytest.mark.parametrize("width", [360, 1440])
def test_a_click_anywhere_on_a_row_opens_its_exchange(tabs: Callable[..., Tab], width: int) -> None:
    tab = tabs(width=width)
    tab.open("lake/exchanges.html?api=ShareFetch")
    row = tab.page.locator("table.list tbody tr").nth(2)
    there = row.get_by_role("link").get_attribute("href")
    row.scroll_into_view_if_needed()
    box = row.bounding_box()
    assert there is not None and box is not None
    tab.page.mouse.click(box["x"] + box["width"] - 6, box["y"] + box["height"] - 6)
    tab.page.wait_for_url(re.compile(re.escape(there.rpartition("/")[2])))


def test_a_finding_leads_to_the_exchange_that_proves_it(tab: Tab) -> None:
    tab.open("lake/findings.html")
    proof = tab.page.locator("section.card li a").first
    name = proof.locator("code").inner_text()
    proof.click()
    tab.page.wait_for_url(re.compile(f"lake/exchange/{name}"))
    expect(tab.page.locator("dl.facts")).to_be_visible()


def test_the_report_is_drawn_under_its_own_policy(tab: Tab) -> None:
    tab.open("lake/index.html")
    tab.page.get_by_role("link", name="the whole report").click()
    tab.page.wait_for_url("**/lake/report.html")
    assert tab.page.locator("svg").count() > 0


@pytest.mark.parametrize("script", [True, False])
def test_the_report_leads_to_exchanges_rules_and_other_pages(tabs: Callable[..., Tab], script: bool) -> None:
    tab = tabs(java_script_enabled=script)
    tab.open("lake/report.html")
    proof = tab.page.locator(".evidence a").first
    proof.evaluate(UNFOLD)
    name = proof.locator("code").inner_text()
    proof.click()
    tab.page.wait_for_url(re.compile(f"lake/exchange/{name}"))
    tab.open("lake/report.html")
    rule = tab.page.locator(".facts a[href*='docs/findings.html']").first
    rule.evaluate(UNFOLD)
    word = rule.inner_text()
    rule.click()
    tab.page.wait_for_url(re.compile(f"docs/findings.html#{word}"))
    tab.open("lake/report.html")
    tab.page.get_by_role("textbox", name="Search").fill("ShareFetch")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**/search.html?q=ShareFetch")
    tab.open("lake/report.html")
    tab.page.get_by_role("navigation", name="Site").get_by_role("link", name="Manual").click()
    tab.page.wait_for_url("**/docs/index.html")


def test_a_click_adds_local_times_to_the_report_and_another_takes_them_away(tabs: Callable[..., Tab]) -> None:
    tab = tabs(timezone_id="Asia/Kolkata")
    tab.open("lake/report.html")
    button = tab.page.get_by_role("button", name="Local time")
    expect(tab.page.locator(".local")).to_have_count(0)
    button.click()
    # From the first recording to the disks, days later.
    local = tab.page.locator(".about .local")
    expect(local).to_have_count(2)
    expect(local.first).to_contain_text("15:39:16 local")
    expect(local.first).to_be_visible()
    button.click()
    expect(local.first).to_be_hidden()


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_the_contents_of_the_report_stay_in_view(tabs: Callable[..., Tab], width: int) -> None:
    tab = tabs(width=width)
    tab.open("lake/report.html")
    tab.page.evaluate("scrollTo(0, document.body.scrollHeight / 2)")
    contents = tab.page.locator("body > nav").bounding_box()
    assert contents is not None
    assert 0 <= contents["y"] < 2


def test_the_command_of_an_advice_is_copied_with_its_names(tabs: Callable[..., Tab]) -> None:
    tab = tabs(permissions=["clipboard-read", "clipboard-write"])
    tab.open("lake/report.html")
    block = tab.page.locator("article.finding .command", has_text="kafka-console-consumer.sh").first
    block.get_by_role("button").click()
    expect(block.get_by_role("button")).to_have_text("Copied")
    copied = tab.page.evaluate("navigator.clipboard.readText()")
    assert copied == block.locator("code").inner_text()
    assert copied.startswith("kafka-console-consumer.sh --bootstrap-server ")
    assert copied.endswith(" --partition 0 --offset 3 --max-messages 1")


def test_a_printed_report_has_no_buttons_and_no_navigation(tab: Tab) -> None:
    tab.open("lake/report.html")
    tab.page.emulate_media(media="print")
    for gone in ("button", "body > nav", ".top"):
        expect(tab.page.locator(gone).first).to_be_hidden()
    expect(tab.page.locator("#incidents")).to_be_visible()
    sideways = "getComputedStyle(document.querySelector('.scroll'), '::before').display"
    assert tab.page.evaluate(sideways) == "none"


@pytest.mark.parametrize("width", [360, 1440])
def test_the_lake_browser_works_without_script(tabs: Callable[..., Tab], width: int) -> None:
    tab = tabs(width=width, java_script_enabled=False)
    tab.open("lake/exchanges.html")
    tab.page.get_by_role("textbox", name="Group").fill("processors")
    tab.page.get_by_role("button", name="Show").click()
    tab.page.wait_for_url(re.compile("group=processors"))
    tab.page.locator("table.list tbody a").first.click()
    tab.page.get_by_role("link", name="Its bytes, re-read from the recording").click()
    tab.page.get_by_text("Every byte with its field").first.click()
    expect(tab.page.locator(".span-table tbody tr").first).to_be_visible()
