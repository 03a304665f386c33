"""Adds what the static site lacks: kinds that need a lake, and routes that take uploads."""

from starlette.routing import BaseRoute

from kafkascope.explorer.decode.decoder import Decoder
from kafkascope.explorer.gate import Gate
from kafkascope.explorer.kinds import KINDS
from kafkascope.explorer.page import Kind
from kafkascope.explorer.render import Renderer
from kafkascope.explorer.server.decode_routes import decode_routes


def server_kinds(lake: str | None) -> tuple[Kind, ...]:
    """All kinds of pages of a server, with those of a lake where one is given."""
    if not lake:
        return KINDS
    # Through it comes pyarrow, which takes its time.
    from kafkascope.explorer.lake_kinds import lake_kinds

    return (*KINDS, *lake_kinds(lake))


def server_routes(renderer: Renderer, lake: str | None, gate: Gate, decoder: Decoder) -> list[BaseRoute]:
    """Routes that are no plain page: they come before those of the kinds. `gate` bounds those of a lake."""
    routes: list[BaseRoute] = list(decode_routes(renderer, decoder))
    if lake:
        from kafkascope.explorer.server.lake_report import report_route

        routes.append(report_route(lake, gate))
    return routes
