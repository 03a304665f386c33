"""Every kind of page in Chromium: axe-core finds nothing, nothing is wider than the window, light and dark."""

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe

from kafkascope.explorer.server.routes import server_kinds
from tests.explorer.browser.conftest import Tab

# Of lakes: the exchange is filled in.
PAGES = {
    "home": "index.html",
    "api": "api/ShareFetch.html",
    "message": "message/ShareFetchRequest/2.html",
    "record": "record/ShareGroupMetadataValue/0.html",
    "records": "records.html",
    "batches": "batches.html",
    "changelog": "changelog/ShareFetch.html",
    "diff": "diff/ShareFetchRequest/0-2.html",
    "release": "release/4.3.html",
    "upgrade": "upgrade/3.9-4.3.html",
    "error": "error/INVALID_RECORD_STATE.html",
    "errors": "errors.html",
    "field": "field/GroupId.html",
    "kip": "kip/932.html",
    "manual": "docs/index.html",
    "manual_page": "docs/README.html",
    "releases": "releases.html",
    "upgrades": "upgrades.html",
    "decode": "decode.html?hex=00000023001200030000000100047465737400",
    "search": "search.html?q=share",
    "lake": "lake/index.html",
    "lake_findings": "lake/findings.html",
    "lake_exchanges": "lake/exchanges.html?api=ShareFetch",
    "lake_records": "lake/records/share_update.html",
    "lake_exchange": "lake/exchange/{}.html",
    "lake_bytes": "lake/bytes/{}.html",
    "report": "lake/report.html",
    "missing": "api/ShareFech.html",
    "long_manual": "docs/findings.html",
    "code_manual": "docs/commands.html",
    "long": "message/StreamsGroupDescribeResponse/1.html",
}
# Chosen by size: what is broad breaks first.
RULES = {"resultTypes": ["violations"]}


def address(tab: Tab, name: str) -> str:
    if "{}" not in PAGES[name]:
        return PAGES[name]
    listed = tab.facts("lake/exchanges.json?api=ShareFetch")["exchanges"]
    return PAGES[name].format(listed[-1]["exchange_id"])


def violations(tab: Tab) -> list[str]:
    violations_found = Axe().run(tab.page, options=RULES).response["violations"]
    return [f"{violation['id']}: {node['html'][:150]}" for violation in violations_found for node in violation["nodes"]]


def too_wide(tab: Tab) -> int:
    width: int = tab.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return width


def test_no_kind_is_left_out() -> None:
    assert {kind.name for kind in server_kinds("anywhere")} <= PAGES.keys()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_fits_in_light_and_dark_wide_and_narrow(tabs: Callable[..., Tab], name: str) -> None:
    tab = tabs(color_scheme="light")
    path = address(tab, name)
    assert tab.open(path).status == (404 if name == "missing" else 200)
    assert tab.page.locator("h1").count() == 1
    assert (violations(tab), too_wide(tab)) == ([], 0)
    bright = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    tab.page.set_viewport_size({"width": 768, "height": 1024})
    assert too_wide(tab) == 0
    tab.page.set_viewport_size({"width": 360, "height": 740})
    tab.page.emulate_media(color_scheme="dark")
    assert tab.page.evaluate("getComputedStyle(document.body).backgroundColor") != bright
    assert (violations(tab), too_wide(tab)) == ([], 0)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_reads_without_script(tabs: Callable[..., Tab], name: str) -> None:
    tab = tabs(width=360, java_script_enabled=False)
    assert tab.open(address(tab, name)).status in (200, 404)
    assert tab.page.locator("h1").is_visible()
    assert len(tab.page.locator("body").inner_text()) > 100
    for gone in tab.page.locator("button.copy, #theme").all():
        assert not gone.is_visible()
