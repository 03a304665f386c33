"""Makes docs/report.png and docs/explorer.png: the demo's report and the explorer's page of ShareFetchRequest v2, seen
by Chromium. Run `make demo` first.

python -m tools.pictures
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tools.debian_packages import MISSING, chromium

_ROOT = Path(__file__).parents[1]
_REPORT = _ROOT / ".cache" / "demo" / "report.html"
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
    if not _REPORT.is_file():
        sys.exit(f"{_REPORT.relative_to(_ROOT)} is missing: run make demo first")
    with sync_playwright() as playwright, _explorer() as address:
        # Chromium's sandbox refuses root.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        _picture(browser, _REPORT.as_uri(), "report.png")
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
        page.locator(top).evaluate("element => element.scrollIntoView()")
    path = _ROOT / "docs" / name
    page.screenshot(path=path, animations="disabled")
    page.close()
    size = path.stat().st_size
    if size > _MAX_BYTES:
        sys.exit(f"{path.relative_to(_ROOT)} has {size:,} bytes, more than {_MAX_BYTES:,}")
    print(f"{path.relative_to(_ROOT)}: {size:,} bytes")


if __name__ == "__main__":
    main()
