"""Makes docs/report.png and docs/explorer.png from the lake of `make demo` and the explorer. Run `make demo` first.

python -m tools.pictures
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from kafkascope.lake.home import open_lake
from kafkascope.report.build import build
from kafkascope.report.page.page import page as report_page
from kafkascope.report.summaries.scope import Scope
from kafkascope.times import microseconds_of
from tools.debian_packages import MISSING, chromium

_ROOT = Path(__file__).parents[1]
_LAKE = _ROOT / ".cache" / "demo" / "lake"
# Three of the recordings are of these minutes. With the fourth, two hours older, each is only a point of the timeline.
_FROM, _UNTIL = datetime(2026, 11, 15, 12, 6, 40, tzinfo=UTC), datetime(2026, 11, 15, 12, 8, 15, tzinfo=UTC)
_MESSAGE = "message/ShareFetchRequest/2.html"
# The report names its lake and recordings by their full paths.
_SHORTEN_PATHS = """root => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(root, "");
}"""
_SIZE = (1280, 860)
# A README with two pictures loads at once on a slow line.
_MAX_BYTES = 300_000


def main() -> None:
    program = chromium()
    if program is None:
        sys.exit(MISSING)
    if not _LAKE.is_dir():
        sys.exit(f"{_LAKE.relative_to(_ROOT)} is missing: run make demo first")
    scope = Scope(since=microseconds_of(_FROM), until=microseconds_of(_UNTIL))
    report = _LAKE.parent / "picture.html"
    report.write_text(report_page(build(open_lake(_LAKE), scope, datetime.now(UTC))), encoding="utf-8")
    with sync_playwright() as playwright, _explorer() as address:
        # Chromium's sandbox refuses root.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        _picture(browser, report.as_uri(), "report.png")
        _picture(browser, f"{address}{_MESSAGE}", "explorer.png", top="#wire")
        browser.close()


@contextmanager
def _explorer() -> Iterator[str]:
    """The address of `kafkascope serve`, which runs until the block ends."""
    command = [sys.executable, "-c", "from kafkascope.cli.main import run; run()", "serve", "--no-browser"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[0]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


def _picture(browser: Browser, address: str, name: str, *, top: str | None = None) -> None:
    """`top` is the element that the picture begins with."""
    width, height = _SIZE
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light", reduced_motion="reduce")
    page.goto(address)
    page.evaluate(_SHORTEN_PATHS, f"{_ROOT}/.cache/demo/")
    if top is not None:
        # The space above a heading would show half a line of what comes before it.
        page.locator(top).evaluate("element => { element.scrollIntoView(); scrollBy(0, 32) }")
    path = _ROOT / "docs" / name
    page.screenshot(path=path, animations="disabled")
    page.close()
    size = path.stat().st_size
    if size > _MAX_BYTES:
        sys.exit(f"{path.relative_to(_ROOT)} has {size:,} bytes, more than {_MAX_BYTES:,}")
    print(f"{path.relative_to(_ROOT)}: {size:,} bytes")


if __name__ == "__main__":
    main()
