"""Renders a report as one self-contained HTML file: no network access, readable without script, every text
escaped. As a page of the explorer it has the explorer's navigation and links to its pages besides."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from kafkascope.formatting import count
from kafkascope.markup import Html, el, join
from kafkascope.report.build import Report
from kafkascope.report.html.patterns import patterns
from kafkascope.report.page.apis import apis_section
from kafkascope.report.page.disks import disks_section
from kafkascope.report.page.incidents import incidents_section, verdict
from kafkascope.report.page.links import links_of
from kafkascope.report.page.quorum import quorum_section
from kafkascope.report.page.rules import rules_section
from kafkascope.report.page.share import share_section
from kafkascope.report.page.site import Site, lake_pages, site_bar
from kafkascope.report.page.streams import streams_section
from kafkascope.report.page.timeline import timeline_section
from kafkascope.report.page.unread import unread_section
from kafkascope.report.words import interval, number, when

PARTS = (
    ("verdict", "Verdict"),
    ("timeline", "Timeline"),
    ("incidents", "Incidents"),
    ("share-groups", "Share groups"),
    ("streams-groups", "Streams groups"),
    ("quorum", "Quorum"),
    ("apis", "APIs and clients"),
    ("disks", "Log directories"),
    ("unread", "Not read"),
    ("rules", "Rules"),
)


def page(report: Report, site: Site | None = None) -> str:
    style, script = _file("page.css") + (_file("site.css") if site else ""), _file("page.js")
    # Only this exact style and script: anything that a name from the wire smuggles in neither runs nor loads.
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; "
        f"form-action '{'self' if site else 'none'}'"
    )
    title = f"Kafka health: {report.lake.rstrip('/').rpartition('/')[2]}"
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="referrer", content="no-referrer"),
        el("title", title),
        el("style", Html(style)),
    )
    body = el(
        "body",
        el("a", "Skip to the verdict", href="#main", class_="skip"),
        patterns(),
        _header(report, site),
        el(
            "nav",
            # The site has its own page about the rules.
            el(
                "ul",
                [el("li", el("a", words, href=f"#{name}")) for name, words in PARTS if not site or name != "rules"],
            ),
            aria_label="Parts of the report",
        ),
        el("main", *_parts(report, site), id="main", tabindex="-1"),
        _footer(report),
        el("script", Html(script)),
    )
    return join([Html("<!DOCTYPE html>\n"), el("html", head, body, lang="en")]).text + "\n"


def _parts(report: Report, site: Site | None) -> list[Html | None]:
    links = links_of(report, site)
    return [
        verdict(
            report.findings,
            (
                ("share groups", number(report.share.count), "in this report"),
                ("streams groups", number(report.streams.count), "in this report"),
                ("recordings", number(report.unread.recordings), count(report.exchanges, "exchange")),
            ),
        ),
        timeline_section(report),
        incidents_section(report.findings, links),
        share_section(report.share, links),
        streams_section(report.streams, links),
        quorum_section(report.quorums, links),
        apis_section(report.apis, report.clients, links),
        disks_section(report.disks, links),
        unread_section(report.unread),
        None if site else rules_section(finding.rule for finding in report.findings.shown),
    ]


def _header(report: Report, site: Site | None) -> Html:
    about = [interval(report.first_at, report.last_at, 1_000_000) + " UTC" if report.first_at else "time unknown"]
    about += [f"groups {', '.join(report.scope.groups)}"] if report.scope.groups else []
    local = el("button", "Local time", id="local", type="button", hidden=True, aria_pressed="false")
    theme = el("button", "Dark", id="theme", type="button", hidden=True)
    title = el(
        "div",
        (lake_pages(site), local) if site else None,
        el("h1", "Kafka health report"),
        el("p", el("span", report.lake, class_="lake"), el("span", "; ".join(about)), class_="about"),
        class_="title",
    )
    return el("header", site_bar(site, theme), title) if site else el("header", title, local, theme)


def _footer(report: Report) -> Html:
    made_at = int(report.made_at.timestamp() * 1_000_000)
    return el(
        "footer",
        el(
            "p",
            f"Made by kafkascope {report.version} on {when(made_at, 60_000_000)} UTC. Times are UTC, sizes decimal. "
            "Every figure comes from the marts of the lake; kafkascope report --json has the same for programs.",
        ),
    )


def _file(name: str) -> str:
    return files("kafkascope.report").joinpath(name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
