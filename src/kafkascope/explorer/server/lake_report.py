"""Serves the report of a lake: one file with its own style and script, and a policy that allows only these."""

import re
from datetime import UTC, datetime
from html import unescape

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kafkascope.explorer.gate import Gate
from kafkascope.explorer.lake_kinds import opened
from kafkascope.lake.place import readable

_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"')


def report_route(where: str, gate: Gate) -> Route:
    def render() -> tuple[str, str]:
        from kafkascope.report.build import build
        from kafkascope.report.page.page import page
        from kafkascope.report.summaries.scope import Scope

        with readable(where):
            text = page(build(opened(where), Scope(), datetime.now(UTC)))
        match = _POLICY.search(text)
        assert match is not None, "the report has a policy"
        return text, unescape(match[1])

    async def respond(request: Request) -> Response:  # noqa: ARG001
        async with gate.entered():
            text, policy = await run_in_threadpool(render)
        headers = {"Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}
        return Response(text, headers=headers, media_type="text/html; charset=utf-8")

    return Route("/lake/report.html", respond)
