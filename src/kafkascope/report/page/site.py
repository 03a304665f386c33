"""Places a report in a site: the header with the site's navigation and search, and where evidence and rules lead."""

from collections.abc import Callable
from dataclasses import dataclass

from kafkascope.markup import Html, el
from kafkascope.report.summaries.findings import EvidenceLink


@dataclass(frozen=True, slots=True)
class Site:
    """A report that is a file of its own has none. `pages` are those of the site and `lake` those of the report's lake,
    each by its name; `here` is the one in each that is the report's. `rule` describes a rule, `exchange` shows one."""

    home: str
    search: str
    pages: dict[str, str]
    lake: dict[str, str]
    here: tuple[str, str]
    exchange: Callable[[EvidenceLink], str]
    rule: Callable[[str], str]


def site_bar(site: Site, theme: Html) -> Html:
    """As on the other pages of the site."""
    return el(
        "div",
        el("a", "kafkascope", href=site.home, class_="brand"),
        el("nav", _list(site.pages, site.here[0], "true"), aria_label="Site", class_="site"),
        el(
            "form",
            el("label", "Search", for_="seek", class_="unseen"),
            el("input", id="seek", name="q", type="text", placeholder="Search", maxlength="100", autocomplete="off"),
            action=site.search,
            method="get",
            role="search",
        ),
        theme,
        class_="top",
    )


def lake_pages(site: Site) -> Html:
    return el("nav", _list(site.lake, site.here[1], "page"), aria_label="Lake", class_="pages")


def _list(pages: dict[str, str], here: str, current: str) -> Html:
    return el(
        "ul",
        [
            el("li", el("a", name, href=address, aria_current=current if name == here else None))
            for name, address in pages.items()
        ],
    )
