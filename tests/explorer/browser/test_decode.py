"""The decode page in Chromium: the four seed messages, a dropped capture, bytes that are none, and no script."""

import base64
import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.captures import capture
from tests.explorer.browser.conftest import Tab

SEEDS = (
    ("ShareGroupDescribeResponse", 1, "groups[0].groupId"),
    ("StreamsGroupHeartbeatResponse", 0, "memberId"),
    ("ShareFetchRequest", 2, "memberId"),
    ("DescribeQuorumResponse", 1, "topics[0].partitions[0].leaderId"),
)


@pytest.mark.parametrize(("name", "version", "path"), SEEDS)
def test_a_seed_message_is_decoded_with_linked_bytes(tab: Tab, name: str, version: int, path: str) -> None:
    example = tab.facts(f"message/{name}/{version}.json")["example"]
    tab.open("decode.html")
    tab.page.locator("#data").fill(example["hex"])
    if name.endswith("Response"):
        tab.page.locator("#as").fill(f"{name}:{version}")
    tab.page.get_by_role("button", name="Decode").click()
    expect(tab.page.locator("#decoded h2")).to_have_text(f"{name} v{version}")
    expect(tab.page.locator("#decoded .badge.healthy")).to_be_visible()
    tab.page.locator(f'#decoded-hex [data-p="{path}"]').last.hover()
    expect(tab.page.locator(f'#decoded-json [data-p="{path}"]')).to_have_class(re.compile("lit"))
    tab.page.get_by_role("link", name="Link to this result").click()
    tab.page.wait_for_url("**/decode.html?hex=*")
    expect(tab.page.locator("#decoded h2")).to_have_text(f"{name} v{version}")


def test_a_dropped_capture_becomes_a_list_of_exchanges(tab: Tab) -> None:
    # Kernels may have to be compiled first.
    deadline = time.monotonic() + 600
    while tab.page.request.post(f"{tab.base}decode.json", data=capture("share")).status == 503:
        assert time.monotonic() < deadline
    tab.open("decode.html")
    dropped = tab.page.evaluate_handle(
        """text => {
            const data = new DataTransfer();
            const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
            data.items.add(new File([bytes], "share.pcap"));
            return data;
        }""",
        base64.b64encode(capture("share")).decode(),
    )
    tab.page.dispatch_event("form[data-drop]", "dragover", {"dataTransfer": dropped})
    tab.page.dispatch_event("form[data-drop]", "drop", {"dataTransfer": dropped})
    expect(tab.page.locator("#recording h2")).to_contain_text("exchanges in share.pcap", timeout=60_000)
    tab.page.locator("#recording tbody a[href*='hex=']").first.click()
    expect(tab.page.locator("#decoded h2")).to_be_visible()


def test_what_cannot_be_read_to_its_end_says_where(tab: Tab) -> None:
    whole = tab.facts("message/ShareFetchRequest/2.json")["example"]["hex"]
    body = bytes.fromhex(whole)[4:-9]
    tab.open("decode.html")
    tab.page.locator("#data").fill((len(body).to_bytes(4, "big") + body).hex())
    tab.page.get_by_role("button", name="Decode").click()
    expect(tab.page.locator("#decoded .problem")).to_contain_text("Read up to offset")
    assert tab.page.locator("#decoded-hex [data-p]").count() > 5


def test_markup_for_bytes_stays_text(tab: Tab) -> None:
    tab.open("decode.html")
    markup = "</textarea><img src=x onerror=alert(1)><script>alert(1)</script>"
    tab.page.locator("#data").fill(markup)
    tab.page.locator("#as").fill(markup)
    tab.page.get_by_role("button", name="Decode").click()
    expect(tab.page.locator("#problem")).to_be_visible()
    assert tab.page.locator("#data").input_value() == markup
    assert tab.page.locator("main img, main script").count() == 0


def test_decode_works_without_script(tabs: Callable[..., Tab]) -> None:
    tab = tabs(width=360, java_script_enabled=False)
    example = tab.facts("message/ShareFetchRequest/2.json")["example"]["hex"]
    tab.open("decode.html")
    tab.page.locator("#data").fill(example)
    tab.page.get_by_role("button", name="Decode").click()
    expect(tab.page.locator("#decoded h2")).to_have_text("ShareFetchRequest v2")
    tab.page.get_by_text("Every byte with its field").click()
    expect(tab.page.locator(".span-table tbody tr").first).to_be_visible()


def test_names_of_messages_complete_as_they_are_typed(tab: Tab) -> None:
    tab.open("decode.html")
    tab.page.locator("#as").focus()
    options = tab.page.locator("#names option")
    expect(tab.page.locator('#names option[value="ShareFetchResponse:2"]')).to_have_count(1)
    tab.page.locator("#as").fill("sharefetchresponse:")
    expect(options).to_have_count(3)
    assert [option.get_attribute("value") for option in options.all()] == [f"ShareFetchResponse:{v}" for v in (2, 1, 0)]


def test_the_form_folds_away_above_a_result(tab: Tab) -> None:
    frame = tab.facts("message/DescribeQuorumResponse/1.json")["example"]["hex"]
    tab.open("decode.html")
    expect(tab.page.locator("#data")).to_be_visible()
    tab.page.locator("#data").fill(frame + frame)
    tab.page.get_by_role("button", name="Decode").click()
    expect(tab.page.locator("#data")).to_be_hidden()
    expect(tab.page.get_by_text("A response doesn't name itself").first).to_be_visible()
    expect(tab.page.locator("#decoded-2 h2")).to_contain_text("DescribeQuorumResponse v1")
    tab.page.get_by_text("Decode something else").click()
    expect(tab.page.locator("#data")).to_have_value(frame + frame)
