"""Links to a place in a page land there: the target is at the top of the view, below the header."""

from collections.abc import Callable

import pytest

from tests.explorer.browser.conftest import Tab

WIDTHS = (360, 768, 1440)
# Pages with each kind of link into themselves: sections, fields, cells of the wire, marks, examples, versions.
PAGES = (
    "message/ShareFetchRequest/2.html",
    "message/StreamsGroupDescribeResponse/1.html",
    "record/PartitionRecord/2.html",
    "api/ShareFetch.html",
    "batches.html",
    "records.html",
    "index.html",
    "decode.html?hex={hex}",
    "lake/report.html",
    "docs/index.html",
    "docs/findings.html",
)
# From other pages: a place is opened at once.
ADDRESSES = (
    "message/ShareFetchRequest/2.html#example",
    "message/ShareFetchRequest/2.html#f-Topics.Partitions.AcknowledgementBatches",
    "message/StreamsGroupDescribeResponse/1.html#f-Groups.Members.Assignment.ActiveTasks.SubtopologyId",
    "message/StreamsGroupDescribeResponse/1.html#example",
    "api/Fetch.html#errors",
    "batches.html#control",
    "changelog/Fetch.html#v12",
    "errors.html#INVALID_RECORD_STATE",
    "records.html#share-state",
    "docs/README.html#the-project",
    "docs/findings.html#recording_tls",
    "docs/commands.html#decode",
)
# A heading's margin.
ROOM = 48
# Links of pictures, too, which have no method for it.
CLICK = """href => document.querySelector(`main a[href="${href}"]`)
    .dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }))"""
WHERE = """() => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const header = [...document.querySelectorAll(".head, .top, body > nav")].map((one) => one.getBoundingClientRect())
        .filter((box) => box.height && box.top <= 0).map((box) => box.bottom);
    const end = document.documentElement.scrollHeight - innerHeight - scrollY;
    return [target.getBoundingClientRect().top - Math.max(0, ...header), end, scrollY];
}"""


def misses(tab: Tab) -> str | None:
    """Why the target is not where it should be. A page has come to rest when two looks say the same."""
    before = None
    for _ in range(100):
        where = tab.page.evaluate(WHERE)
        if where == before:
            break
        before = where
    below, left, scrolled = where
    # The last sections of a page cannot come any higher, the first no lower.
    if 0 <= below <= ROOM or (left < 2 and below > 0) or (scrolled == 0 and below > 0):
        return None
    return f"{tab.page.url}: {below:.0f} px below the header"


def fragments(tab: Tab) -> list[str]:
    listed: list[str] = tab.page.evaluate(
        """() => {
            const links = [...document.querySelectorAll('main a[href^="#"]')];
            return [...new Set(links.map((one) => one.getAttribute("href")))];
        }"""
    )
    return listed


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", PAGES)
def test_links_of_a_page_into_itself_land_on_their_targets(tabs: Callable[..., Tab], path: str, width: int) -> None:
    tab = tabs(width=width)
    frame = tab.facts("message/HeartbeatRequest/4.json")["example"]["hex"]
    tab.open(path.format(hex=2 * frame))
    tab.page.wait_for_selector(".perma, .copy:not([hidden])", state="attached")
    listed = fragments(tab)
    assert listed
    wrong = []
    # All of a page's sections, and some of its fields from the first to the last.
    for fragment in listed[:12] + listed[12 :: max(1, len(listed) // 12)]:
        tab.page.evaluate(CLICK, fragment)
        wrong.append(misses(tab))
    assert [miss for miss in wrong if miss] == []


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_with_a_place_opens_there(tabs: Callable[..., Tab], address: str, width: int, script: bool) -> None:
    tab = tabs(width=width, java_script_enabled=script)
    tab.open(address)
    assert misses(tab) is None


@pytest.mark.parametrize("width", WIDTHS)
def test_going_back_leads_to_where_one_was(tabs: Callable[..., Tab], width: int) -> None:
    tab = tabs(width=width)
    tab.open("message/ShareFetchRequest/2.html#schema")
    assert misses(tab) is None
    tab.page.evaluate("document.querySelector('main a[href=\"#example\"]').click()")
    assert misses(tab) is None
    tab.page.go_back()
    tab.page.wait_for_function("location.hash === '#schema'")
    assert misses(tab) is None
