"""The explorer over HTTP on loopback: reference pages a second, first paint in Chromium, pages while sixty uploads
come, and pages of the lake browser on a lake with a million exchanges. The server is a process of its own, as
`kafkascope serve` starts it."""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING

from bench.explorer_lake import DAY_US, FIRST_US, RARE, large_lake
from bench.explorer_load import load
from bench.explorer_uploads import PAUSE, UPLOADS, flood
from kafkascope.explorer.address import address
from kafkascope.explorer.kinds import KINDS
from kafkascope.lake.home import Lake
from kafkascope.lake.read.browse import EXCHANGES
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.limits import MAX_KEPT_PAGES
from tools.debian_packages import MISSING, chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CONNECTIONS, _SECONDS = 8, 10.0
_PAINT_AIM_MS, _LAKE_AIM_MS = 100, 300
_PAGE_AIM_S = 1
_RUNS = 9
# What Chromium takes on this machine at this time, for a page that is nothing but text.
_FLOOR, _BEFORE = "page.css", "kip/932.html"
_PAINTED = ("index.html", "api/ShareFetch.html", "message/ShareFetchRequest/2.html", "errors.html", "release/4.3.html")


def lines() -> Iterable[str]:
    """Each as soon as it is known."""
    with _served() as (base, _):
        yield from _pages(base)
        yield ""
        yield from _weight(base)
        yield ""
        yield from _paint(base)
    yield ""
    with _served() as (base, pid):
        yield from _uploads(base, pid)
    yield ""
    lake = large_lake()
    with _served("--lake", lake.uri) as (base, _):
        yield from _lake(base, lake)


@contextmanager
def _served(*arguments: str) -> Iterator[tuple[str, int]]:
    """The address, and the process."""
    command = [sys.executable, "-u", "-c", "from kafkascope.cli.main import run; run()", "serve", "--no-browser"]
    with subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        base = process.stdout.readline().split()[0]
        try:
            yield base, process.pid
        finally:
            process.terminate()
            process.wait(30)


def _pages(base: str) -> Iterator[str]:
    every = [address(kind, parameters) for kind in KINDS for parameters in kind.every()]
    kept = [path for path in every if path.startswith("api/")]
    kept += [path for path in every if path.startswith("message/Share")]
    kept = kept[: MAX_KEPT_PAGES // 2]
    once, again = "every page of the static site, each made once", f"{len(kept)} pages that the server keeps"
    yield f"reference pages, {CONNECTIONS} connections that stay open; the load is bench/explorer_load.py, over asyncio"
    yield f"{'':<52}{'pages':>8}{'a second':>10}{'p50 ms':>9}{'p99 ms':>9}{'MB/s':>8}"
    for label, paths, seconds, packed in (
        (once, every, None, False),
        (f"{again}, {_SECONDS:g} s", kept, _SECONDS, False),
        (f"{again}, in gzip", kept, _SECONDS, True),
    ):
        result = load(base, paths, connections=CONNECTIONS, seconds=seconds, packed=packed)
        yield (
            f"{label:<52}{len(result.times):8,}{result.a_second:10,.0f}{1e3 * result.percentile(0.5):9.2f}"
            f"{1e3 * result.percentile(0.99):9.2f}{result.bytes / result.seconds / 1e6:8.1f}"
        )


def _weight(base: str) -> Iterator[str]:
    yield f"{'bytes':<52}{'page':>10}{'in gzip':>10}"
    every = [address(kind, parameters) for kind in KINDS for parameters in kind.every()]
    for label, paths in {
        f"mean of {len(every):,} pages": every,
        "index.html": ["index.html"],
        "message/ShareFetchRequest/2.html": ["message/ShareFetchRequest/2.html"],
        "style and script of every page": ["page.css", "page.js"],
        "search.js, loaded by the first search": ["search.js"],
    }.items():
        plain, packed = (load(base, paths, connections=1, packed=packed) for packed in (False, True))
        pages = len(paths) if paths is every else 1
        yield f"{label:<52}{plain.bytes / pages:10,.0f}{packed.bytes / pages:10,.0f}"


def _uploads(base: str, pid: int) -> Iterator[str]:
    result = flood(base, pid)
    yield f"{UPLOADS} uploads of 16 MB at once, and a page every {PAUSE:g} s; aim {_PAGE_AIM_S} s for the slowest page"
    statuses = ", ".join(f"{count} times {status}" for status, count in sorted(result.statuses.items()))
    yield f"the uploads got {statuses}; 503 without Retry-After: {result.without_retry}"
    median_s, worst_s = result.pages[len(result.pages) // 2], result.pages[-1]
    yield f"{len(result.pages)} pages: median {1e3 * median_s:.0f} ms, slowest {1e3 * worst_s:.0f} ms"
    yield "peak memory: " + ", ".join(f"{name} {peak >> 20} MiB" for name, peak in result.peak_bytes.items())


def _paint(base: str) -> Iterator[str]:
    program = chromium()
    if program is None:
        yield f"first paint: {MISSING}"
        return
    from playwright.sync_api import sync_playwright

    yield f"first contentful paint in Chromium, ms, {_RUNS} visits: the next page in a tab (aim {_PAINT_AIM_MS} ms),"
    yield "and the first page of a new profile, with nothing cached and a process to start"
    yield f"{'':<52}{'next':>8}{'worst':>8}{'first':>8}{'worst':>8}"
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        for path in (_FLOOR, *_PAINTED):
            label = "floor: a plain text of the same server" if path == _FLOOR else path
            following, first = _next_page(browser, base, path), _first_page(browser, base, path)
            times = (median(following), max(following), median(first), max(first))
            yield f"{label:<52}{''.join(f'{time:8.0f}' for time in times)}"
        browser.close()


def _next_page(browser: "Browser", base: str, path: str) -> list[float]:
    context = browser.new_context()
    page = context.new_page()
    times = []
    for _ in range(_RUNS):
        page.goto(f"{base}{_BEFORE}")
        page.goto(f"{base}{path}")
        times.append(float(page.evaluate(_FIRST_PAINT)))
    context.close()
    return times


def _first_page(browser: "Browser", base: str, path: str) -> list[float]:
    times = []
    for _ in range(_RUNS):
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{base}{path}")
        times.append(float(page.evaluate(_FIRST_PAINT)))
        context.close()
    return times


_FIRST_PAINT = """() => new Promise((done) => new PerformanceObserver((list) => {
    const found = list.getEntriesByName("first-contentful-paint")[0];
    if (found) done(found.startTime);
}).observe({ type: "paint", buffered: true }))"""


def _lake(base: str, lake: Lake) -> Iterator[str]:
    count = dataset(lake, EXCHANGES).count_rows()
    yield f"the lake browser, {count:,} exchanges with their bodies; aim {_LAKE_AIM_MS} ms for the slowest"
    yield f"{'':<52}{'best':>8}{'median':>10}{'worst':>9}"
    deep = FIRST_US + DAY_US * 95 // 100
    late = f"after={deep}-0"
    row = dataset(lake, EXCHANGES).scanner(columns=["exchange_id", "request_at"]).take([count - 1000]).to_pylist()[0]
    name, at = row["exchange_id"], round(row["request_at"].timestamp() * 1e6)
    slowest = ("", 0.0)
    for label, path in {
        "overview": "lake/index.html",
        "first page": "lake/exchanges.html",
        "deep page": f"lake/exchanges.html?{late}",
        "an API": "lake/exchanges.html?api=ShareFetch",
        "a client": "lake/exchanges.html?client=steady",
        "an unknown client, with *": "lake/exchanges.html?client=*nobody*",
        "a rare error": f"lake/exchanges.html?error={RARE}",
        "any error, deep": f"lake/exchanges.html?error=any&{late}",
        "slower than a minute: none": "lake/exchanges.html?slow=60000",
        "one hour": "lake/exchanges.html?since=2026-11-15T15:00&until=2026-11-15T16:00",
        "a group": "lake/exchanges.html?group=processors",
        "a group, deep": f"lake/exchanges.html?group=processors&{late}",
        "an unknown group": "lake/exchanges.html?group=nobody",
        "a group, unanswered alone": "lake/exchanges.html?group=processors&status=unanswered",
        "one exchange": f"lake/exchange/{name}.html?at={at}",
        "one exchange, its time not known": f"lake/exchange/{name}.html",
    }.items():
        times = [load(base, [path], connections=1).times[0] for _ in range(_RUNS + 1)][1:]
        slowest = max(slowest, (label, median(times)), key=lambda timed: timed[1])
        yield f"{label:<52}{1e3 * min(times):8.0f}{1e3 * median(times):10.0f}{1e3 * max(times):9.0f}"
    yield f"slowest by median: {slowest[0]}, {1e3 * slowest[1]:.0f} ms"
