"""A server in a process of its own and a Chromium, one of each for the tests of a worker; and tabs that are watched."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, Response, sync_playwright

from tools.debian_packages import MISSING, chromium

# What the browser itself says of an answer that is no success.
STATUS = "Failed to load resource: the server responded with a status of"


@dataclass(slots=True)
class Tab:
    """A page of the browser, and what was heard of it: errors on its console, requests that went elsewhere."""

    page: Page
    base: str
    faults: list[str] = field(default_factory=list)

    def open(self, path: str) -> Response:
        response = self.page.goto(f"{self.base}{path}")
        assert response is not None
        return response

    def facts(self, path: str) -> Any:
        """JSON of a page."""
        return self.page.request.get(f"{self.base}{path}").json()

    def watch(self) -> None:
        def keep(text: str) -> None:
            if not text.startswith(STATUS):
                self.faults.append(text)

        def sent(request: Request) -> None:
            if not request.url.startswith((self.base, "data:", "blob:")):
                self.faults.append(f"asked {request.url}")

        self.page.on("console", lambda message: keep(message.text) if message.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: keep(str(error)))
        self.page.on("request", sent)


@pytest.fixture(scope="session")
def served(incidents: Path) -> Iterator[str]:
    """The address of `kafkascope serve --lake`."""
    command = [sys.executable, "-c", "from kafkascope.cli.main import run; run()", "serve", "--no-browser"]
    with subprocess.Popen(
        [*command, "--lake", str(incidents / "lake")],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[0]
        try:
            yield address
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Of this package alone: while it runs, its thread has a running event loop, and others want one of their own."""
    program = chromium()
    if program is None:
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        # Chromium's sandbox refuses root.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser_found = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser_found
        browser_found.close()


@pytest.fixture
def tabs(browser: Browser, served: str) -> Iterator[Callable[..., Tab]]:
    """`tabs(width=360, color_scheme="dark")`. At the end none may have had a fault."""
    opened: list[Tab] = []

    def new(width: int = 1440, **options: Any) -> Tab:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        tab = Tab(context.new_page(), served)
        tab.watch()
        opened.append(tab)
        return tab

    yield new
    for tab in opened:
        tab.page.context.close()
    assert [fault for tab in opened for fault in tab.faults] == []


@pytest.fixture
def tab(tabs: Callable[..., Tab]) -> Tab:
    return tabs()
