"""Adds what the static site lacks: kinds that need a lake, and routes that take uploads."""

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from kafkascope.explorer.decode.decoder import Decoder
from kafkascope.explorer.gate import Gate
from kafkascope.explorer.kinds import KINDS
from kafkascope.explorer.page import Kind
from kafkascope.explorer.render import Renderer
from kafkascope.explorer.server.decode_routes import decode_routes

_LONGEST_RELEASE = 20


def server_kinds(lake: str | None) -> tuple[Kind, ...]:
    """All kinds of pages of a server, including those of a lake if there is one."""
    if not lake:
        return KINDS
    # It imports pyarrow, which takes time.
    from kafkascope.explorer.lake_kinds import home_kind, lake_kinds

    kinds = {kind.name: kind for kind in (*KINDS, home_kind(lake), *lake_kinds(lake))}
    return tuple(kinds.values())


def server_routes(renderer: Renderer, lake: str | None, gate: Gate, decoder: Decoder) -> list[BaseRoute]:
    """Routes that aren't plain pages; they precede those of the kinds. `gate` limits those of a lake."""
    routes: list[BaseRoute] = [*decode_routes(renderer, decoder), Route("/upgrade.html", _chosen_upgrade)]
    if lake:
        from kafkascope.explorer.server.lake_report import report_route

        routes.append(report_route(lake, gate, renderer))
    return routes


async def _chosen_upgrade(request: Request) -> Response:
    """Redirects the form with two releases to their page, which reports an unknown release."""
    old, new = (quote(request.query_params.get(name, "")[:_LONGEST_RELEASE], safe="") for name in "ab")
    return RedirectResponse(f"upgrade/{old}-{new}.html", 303)
