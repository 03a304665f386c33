"""The web application: renders the page of an address. A 404 suggests pages that exist."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from kafkascope.errors import InputError, KafkascopeError, ReachError, UsageError
from kafkascope.explorer.address import address
from kafkascope.explorer.assets import ASSETS, asset
from kafkascope.explorer.decode.decoder import DECODER, Decoder
from kafkascope.explorer.downloads import DOWNLOADS, Download
from kafkascope.explorer.facts.missing import near
from kafkascope.explorer.gate import Busy, Gate
from kafkascope.explorer.gates import LAKE, server_gates
from kafkascope.explorer.page import Kind, Page
from kafkascope.explorer.render import Renderer, json_text
from kafkascope.explorer.server.content import Content
from kafkascope.explorer.server.guard import Guard
from kafkascope.explorer.server.routes import server_kinds, server_routes
from kafkascope.limits import MAX_KEPT_PAGES

_HTML = "text/html; charset=utf-8"
_JSON = "application/json; charset=utf-8"


def create(
    lake: str | None = None,
    host: str = "127.0.0.1",
    decoder: Decoder = DECODER,
    gates: Mapping[str, Gate] | None = None,
) -> Starlette:
    """`lake` is the folder or URI of a lake whose pages are added; `host` is what the server listens on."""
    gates = gates or server_gates()
    renderer = Renderer(server_kinds(lake))
    routes: list[BaseRoute] = [Route("/", lambda _: RedirectResponse("index.html"))]
    routes += [Route(f"/{name}", _asset(name)) for name in ASSETS]
    routes += [Route(f"/{download.path}", _download(download)) for download in DOWNLOADS]
    routes += server_routes(renderer, lake, gates[LAKE], decoder)
    kept: dict[str, Content] = {}
    for kind in renderer.kinds.values():
        for as_json in (True, False):
            path = f"{kind.path.removesuffix('.html')}.json" if as_json else kind.path
            routes.append(Route(f"/{path}", _page(renderer, kind, as_json, kept, gates.get(kind.gate))))
    handlers: dict[Any, Any] = {404: _nowhere(renderer), KafkascopeError: _failed(renderer)}
    return Starlette(routes=routes, middleware=[Middleware(Guard, host=host)], exception_handlers=handlers)


_Endpoint = Callable[[Request], Awaitable[Response]]


def _page(renderer: Renderer, kind: Kind, as_json: bool, kept: dict[str, Content], gate: Gate | None) -> _Endpoint:
    def make(parameters: dict[str, str]) -> Content:
        page = kind.make(**parameters)
        if as_json:
            return Content(json_text(page), _JSON)
        places = {name: value for name, value in parameters.items() if name not in kind.query}
        return Content(renderer.html(kind, places, page), _HTML)

    async def respond(request: Request) -> Response:
        query = request.query_params
        parameters = {**request.path_params, **{name: query.get(name, "") for name in kind.query}}
        if gate is not None:
            async with gate.entered():
                content = await run_in_threadpool(make, parameters)
            return await content.response(request)
        if not kind.lasting or kind.query:
            return await (await run_in_threadpool(make, parameters)).response(request)
        key = f"{as_json} {address(kind, parameters)}"
        known = kept.get(key)
        if known is None:
            known = await run_in_threadpool(make, parameters)
            # The oldest page is dropped; remaking it takes milliseconds.
            while len(kept) >= MAX_KEPT_PAGES:
                kept.pop(next(iter(kept)), None)
            kept[key] = known
        return await known.response(request)

    return respond


def _asset(name: str) -> _Endpoint:
    kept: list[Content] = []

    async def respond(request: Request) -> Response:
        if not kept:
            kept.append(Content(await run_in_threadpool(asset, name), ASSETS[name]))
        return await kept[0].response(request)

    return respond


def _download(download: Download) -> _Endpoint:
    async def respond(request: Request) -> Response:
        text = await run_in_threadpool(lambda: download.make(**request.path_params))
        return await Content(text, download.media_type).response(request)

    return respond


def _failed(renderer: Renderer) -> Callable[[Request, Exception], Response]:
    def respond(request: Request, error: Exception) -> Response:
        status = 404 if isinstance(error, UsageError) else 503 if isinstance(error, (ReachError, Busy)) else 500
        if isinstance(error, InputError):
            status = 422
        response = _problem(renderer, request.url.path, str(error), status)
        if isinstance(error, Busy):
            response.headers["Retry-After"] = str(error.seconds)
        return response

    return respond


def _nowhere(renderer: Renderer) -> Callable[[Request, Exception], Response]:
    def respond(request: Request, error: Exception) -> Response:  # noqa: ARG001
        return _problem(renderer, request.url.path, "There is no page at this address.", 404)

    return respond


def _problem(renderer: Renderer, path: str, text: str, status: int) -> Response:
    """An error as a page, or as JSON if the request asks for JSON."""
    title = "Not found" if status == 404 else "That did not work"
    page = Page(title, {"error": text, "near": near(path) if status == 404 else []})
    if path.endswith(".json"):
        return Response(json_text(page), status, media_type=_JSON)
    # Quoted, since in links of the page a name with a colon would look like a scheme.
    here = quote(path.removeprefix("/"), safe="/@")
    return Response(renderer.render("missing.html", here, page), status, media_type=_HTML)
