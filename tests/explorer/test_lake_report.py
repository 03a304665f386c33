"""The report as a page of the explorer: every link of it leads to a page and a place."""

import html
import re
from pathlib import Path
from posixpath import join, normpath

import pytest
from starlette.applications import Starlette

from kafkascope.explorer.render import NAVIGATION
from kafkascope.explorer.server.app import create
from tests.explorer.asgi import ask

LINK = re.compile(r'<(?:a|form)[^>]*\s(?:href|action)="([^"]*)"')
ID = re.compile(r'\sid="([^"]*)"')


@pytest.fixture(scope="module")
def app(incidents: Path) -> Starlette:
    return create(str(incidents / "lake"))


def test_every_link_of_the_report_leads_to_a_place(app: Starlette) -> None:
    page = ask(app, "/lake/report.html").text
    places = {"": {html.unescape(name) for name in ID.findall(page)}}
    links = {html.unescape(link) for link in LINK.findall(page)}
    wrong = []
    for link in sorted(links):
        path, _, fragment = link.partition("#")
        if path not in places:
            answer = ask(app, normpath(join("/lake", path)))
            places[path] = {html.unescape(name) for name in ID.findall(answer.text)} if answer.status == 200 else set()
        if not places[path] or (fragment and fragment not in places[path]):
            wrong.append(link)
    assert wrong == []
    assert any(link.startswith("../docs/findings.html#share_") for link in links)


def test_its_evidence_leads_to_the_exchanges_as_that_of_the_findings_does(app: Starlette) -> None:
    findings = ask(app, "/lake/findings.json").json["findings"]
    proofs = {(proof["exchange_id"], proof["at"]) for finding in findings for proof in finding["evidence"]}
    page = ask(app, "/lake/report.html").text
    links = re.findall(r'href="\.\./lake/exchange/(\w+)\.html\?at=(\d+)"', page)
    assert proofs
    assert {(name, int(at)) for name, at in links} == proofs


def test_it_has_the_navigation_of_every_other_page(app: Starlette) -> None:
    page = ask(app, "/lake/report.html").text
    navigation = page.partition('aria-label="Site"')[2].partition("</nav>")[0]
    assert re.findall(r">(\w+)</a>", navigation) == [*NAVIGATION.values()]
    assert re.search(r'<a href="\.\./lake/report\.html" aria-current="page">Report</a>', page)


def test_in_the_explorer_only_its_own_search_takes_a_form(app: Starlette) -> None:
    response = ask(app, "/lake/report.html")
    assert "form-action 'self'" in response.headers["content-security-policy"]
    assert re.findall(r"<form[^>]*>", response.text) == ['<form action="../search.html" method="get" role="search">']
