"""The decode page on the server: a link with a few bytes or a form with many in, the page or its JSON out.

An upload that is too large is refused by its announced length before a byte of it is read, and by counting where none
is announced.
"""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from kafkascope.codec.byte_text import FORMS
from kafkascope.errors import InputError, UsageError
from kafkascope.explorer.decode_worker import WORKER, DecodeWorker
from kafkascope.explorer.decoded import for_page
from kafkascope.explorer.form_data import Part, parse_form
from kafkascope.explorer.page import Page
from kafkascope.explorer.pages.decode import KIND, decode_page
from kafkascope.explorer.render import Renderer, json_text
from kafkascope.limits import MAX_LINK_BYTES, MAX_UPLOAD_BYTES

# Beside the file a form has a few short fields and their borders.
_FORM_BYTES = 65_536


class TooLarge(InputError):
    """the upload has 1073741824 bytes; the decode page takes 16777216"""


def decode_routes(renderer: Renderer, worker: DecodeWorker = WORKER) -> list[BaseRoute]:
    def answer(request: Request, page: Page, status: int) -> Response:
        headers = {"Connection": "close"} if status == 413 else {}
        if request.url.path.endswith(".json"):
            return Response(json_text(page), status, headers, "application/json; charset=utf-8")
        return Response(renderer.html(KIND, {}, page), status, headers, "text/html; charset=utf-8")

    async def linked(request: Request) -> Response:
        """GET: `?hex=…&as=NAME:V&release=R`."""
        asked = request.query_params
        given = {name: asked.get(name, "") for name in ("hex", "as", "release")}
        if not given["hex"]:
            return answer(request, decode_page(name=given["as"], release=given["release"]), 200)
        if len(given["hex"]) > 2 * MAX_LINK_BYTES:
            said = f"a link holds {MAX_LINK_BYTES} bytes at the most; paste them into the form"
            return answer(request, decode_page(problem=said), 414)
        fields = {"data": Part(given["hex"].encode()), "form": Part(b"auto")}
        fields |= {name: Part(given[name].encode()) for name in ("as", "release")}
        return await run_in_threadpool(decoded, request, fields)

    async def sent(request: Request) -> Response:
        """POST: a form, or the bytes themselves with the rest behind the `?`."""
        if is_foreign(request):
            return answer(request, decode_page(problem="a form of another site is not decoded"), 403)
        try:
            body = await read_body(request)
            fields = fields_of(request, body)
        except TooLarge as error:
            return answer(request, decode_page(problem=str(error)), 413)
        except InputError as error:
            return answer(request, decode_page(problem=str(error)), 422)
        return await run_in_threadpool(decoded, request, fields)

    def decoded(request: Request, fields: dict[str, Part]) -> Response:
        page, status = decode(fields, worker)
        return answer(request, page, status)

    return [
        Route(path, endpoint, methods=methods)
        for path in ("/decode.html", "/decode.json")
        for endpoint, methods in ((linked, ["GET"]), (sent, ["POST"]))
    ]


def is_foreign(request: Request) -> bool:
    """Whether a page of another site sent it. Older browsers tell by `Origin` alone, and what is no browser by neither;
    `null` is an origin that hides itself."""
    site, origin = (request.headers.get(name, "").lower() for name in ("sec-fetch-site", "origin"))
    if site in ("cross-site", "same-site"):
        return True
    if origin == "null":
        return site not in ("same-origin", "none")
    return bool(origin) and origin.partition("://")[2] != request.headers.get("host", "").lower()


async def read_body(request: Request) -> bytes:
    most = MAX_UPLOAD_BYTES + _FORM_BYTES
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced[:20]) > most:
        raise TooLarge(f"the upload has {announced[:20]} bytes; the decode page takes {MAX_UPLOAD_BYTES}")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise TooLarge(f"the upload has more than {most} bytes; the decode page takes {MAX_UPLOAD_BYTES}")
    return bytes(body)


def fields_of(request: Request, body: bytes) -> dict[str, Part]:
    kind = request.headers.get("content-type", "")
    if kind.startswith(("application/x-www-form-urlencoded", "multipart/form-data")):
        return parse_form(kind, body)
    asked = request.query_params
    return {"data": Part(body), **{name: Part(asked.get(name, "").encode()) for name in ("as", "release", "form")}}


def decode(fields: dict[str, Part], worker: DecodeWorker) -> tuple[Page, int]:
    """A file counts before text. The page and the status of its answer."""

    def word(name: str) -> str:
        return fields[name].content.decode(errors="replace").strip() if name in fields else ""

    upload = fields.get("file")
    has_file = upload is not None and bool(upload.content)
    part = upload if has_file and upload is not None else fields.get("data", Part(b""))
    form = word("form") if word("form") in FORMS else "auto"
    given: dict[str, Any] = {"name": word("as"), "release": word("release"), "form": form}
    given["file"] = (part.file or "") if has_file else ""
    shown = "" if has_file else part.content.decode(errors="replace")
    if len(part.content) > MAX_UPLOAD_BYTES:
        said = f"{len(part.content)} bytes; the decode page takes {MAX_UPLOAD_BYTES}"
        return decode_page(**given, problem=said), 413
    if not part.content.strip():
        return decode_page(**given, problem="nothing to decode: paste bytes, or choose a file"), 422
    try:
        answer = worker.decode(part.content, given["name"], given["release"], form, given["file"])
    except UsageError as error:
        return decode_page(**given, text=shown, problem=for_page(str(error))), 404
    except InputError as error:
        return decode_page(**given, text=shown, problem=for_page(str(error))), 422
    return decode_page(**given, text=shown, answer=answer), 200
