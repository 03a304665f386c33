"""Serves the report of a lake as a page of the explorer, with a policy that allows only its own style and script."""

import re
from datetime import UTC, datetime
from html import unescape
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kafkascope.explorer.address import relative
from kafkascope.explorer.gate import Gate
from kafkascope.explorer.lake_kinds import opened
from kafkascope.explorer.render import NAVIGATION, Renderer
from kafkascope.explorer.server.content import Content
from kafkascope.lake.place import readable

if TYPE_CHECKING:
    from kafkascope.report.page.site import Site

_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"')


HERE = "lake/report.html"


def report_route(where: str, gate: Gate, renderer: Renderer) -> Route:
    def render() -> tuple[str, str]:
        from kafkascope.report.build import build
        from kafkascope.report.page.page import page
        from kafkascope.report.summaries.scope import Scope

        with readable(where):
            text = page(build(opened(where), Scope(), datetime.now(UTC)), _site(renderer))
        match = _POLICY.search(text)
        assert match is not None, "the report has a policy"
        return text, unescape(match[1])

    async def respond(request: Request) -> Response:
        async with gate.entered():
            text, policy = await run_in_threadpool(render)
        headers = {"Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}
        return await Content(text, "text/html; charset=utf-8", headers=headers).response(request)

    return Route(f"/{HERE}", respond)


def _site(renderer: Renderer) -> "Site":
    from kafkascope.report.page.site import Site
    from kafkascope.report.summaries.findings import EvidenceLink

    def link(kind: str, **parameters: str) -> str:
        return renderer.link(HERE, kind, parameters) or ""

    def exchange(proof: EvidenceLink) -> str:
        at = "" if proof.request_at is None else f"?at={proof.request_at}"
        return link("lake_exchange", exchange_id=proof.exchange_id) + at

    def rule(name: str) -> str:
        return link("manual_page", name="findings", fragment=name)

    lake = {"Overview": link("lake"), "Report": relative(HERE, HERE)}
    lake |= {"Findings": link("lake_findings"), "Exchanges": link("lake_exchanges")}
    pages = {name: link(kind) for kind, name in NAVIGATION.items()}
    return Site(link("home"), link("search"), pages, lake, ("Lake", "Report"), exchange, rule)
