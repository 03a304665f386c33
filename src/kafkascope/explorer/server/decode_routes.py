"""Serves the decode page and its JSON, for a link with a few bytes or a form with many."""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from kafkascope.codec.text.byte_text import FORMS
from kafkascope.errors import InputError, KafkascopeError, UsageError
from kafkascope.explorer.decode.decoded import for_page
from kafkascope.explorer.decode.decoder import Decoder
from kafkascope.explorer.gate import Busy
from kafkascope.explorer.page import Page
from kafkascope.explorer.pages.decode import KIND, MAX_ECHO_CHARACTERS, decode_page
from kafkascope.explorer.render import Renderer, json_text
from kafkascope.explorer.server.content import Content
from kafkascope.explorer.server.form_data import FormPart, parse_form
from kafkascope.explorer.server.upload import TooLarge, TooSlow, announced_bytes, read_body
from kafkascope.limits import MAX_LINK_BYTES, MAX_UPLOAD_BYTES

# A character takes up to four bytes.
_MAX_ECHO_BYTES = 4 * MAX_ECHO_CHARACTERS
# Names of messages and releases are shorter.
_MAX_WORD_BYTES = 200


def decode_routes(renderer: Renderer, decoder: Decoder) -> list[BaseRoute]:
    def written(request: Request, page: Page, status: int, headers: dict[str, str] | None = None) -> Content:
        if request.url.path.endswith(".json"):
            return Content(json_text(page), "application/json; charset=utf-8", status, headers)
        return Content(renderer.html(KIND, {}, page), "text/html; charset=utf-8", status, headers)

    async def refused(request: Request, error: KafkascopeError, **shown: Any) -> Response:
        page = decode_page(**shown, problem=for_page(str(error)))
        retry = {"Retry-After": str(error.seconds)} if isinstance(error, Busy) else None
        return await written(request, page, _status_of(error), retry).response(request)

    async def linked(request: Request) -> Response:
        """GET: `?hex=…&as=NAME:V&release=R`."""
        query = request.query_params
        values = {name: query.get(name, "") for name in ("hex", "as", "release")}
        if not values["hex"]:
            page = decode_page(name=values["as"], release=values["release"])
            return await written(request, page, 200).response(request)
        if len(values["hex"]) > 2 * MAX_LINK_BYTES:
            reason = f"a link holds at most {MAX_LINK_BYTES} bytes; paste them into the form"
            return await written(request, decode_page(problem=reason), 414).response(request)
        fields = {"data": FormPart(values["hex"].encode()), "form": FormPart(b"auto")}
        fields |= {name: FormPart(values[name].encode()) for name in ("as", "release")}
        return await decoded(request, fields)

    async def sent(request: Request) -> Response:
        """POST: a form, or raw bytes with the options in the query.

        No refusal closes the connection: a client that is still sending would get a reset and never see the refusal.
        The server reads and drops the rest, for as long as it waits for the head of a next request."""
        if _is_foreign(request):
            page = decode_page(problem="forms of other sites aren't decoded")
            return await written(request, page, 403).response(request)
        try:
            with decoder.uploads.held(announced_bytes(request)):
                body = await read_body(request, decoder.upload_seconds)
                async with decoder.parsing.entered():
                    fields = await run_in_threadpool(_fields_of, request, body)
                del body
                return await decoded(request, fields)
        except ClientDisconnect:
            # The client is gone.
            return Response(status_code=400)
        except KafkascopeError as error:
            return await refused(request, error)

    async def decoded(request: Request, fields: dict[str, FormPart]) -> Response:
        part, options, shown = _input_of(fields)
        try:
            if len(part.content) > MAX_UPLOAD_BYTES:
                raise TooLarge(f"{len(part.content)} bytes; the decode page takes {MAX_UPLOAD_BYTES}")
            if not part.content.strip():
                raise InputError("nothing to decode: paste bytes, or choose a file")
            facts = await decoder.decode(
                part.content, options["name"], options["release"], options["form"], options["file"]
            )
        except KafkascopeError as error:
            return await refused(request, error, **options, text=shown)
        # Rendering two thousand pieces takes a while.
        page = decode_page(**options, text=shown, answer=facts)
        return await (await run_in_threadpool(written, request, page, 200)).response(request)

    return [
        Route(path, endpoint, methods=methods)
        for path in ("/decode.html", "/decode.json")
        for endpoint, methods in ((linked, ["GET"]), (sent, ["POST"]))
    ]


def _status_of(error: KafkascopeError) -> int:
    statuses = ((TooLarge, 413), (TooSlow, 408), (Busy, 503), (UsageError, 404))
    return next((status for kind, status in statuses if isinstance(error, kind)), 422)


def _is_foreign(request: Request) -> bool:
    """Whether a page of another site sent it. Older browsers send only `Origin`, other programs no such header; `null`
    is a hidden origin."""
    site, origin = (request.headers.get(name, "").lower() for name in ("sec-fetch-site", "origin"))
    if site in ("cross-site", "same-site"):
        return True
    if origin == "null":
        return site not in ("same-origin", "none")
    return bool(origin) and origin.partition("://")[2] != request.headers.get("host", "").lower()


def _fields_of(request: Request, body: bytearray) -> dict[str, FormPart]:
    kind = request.headers.get("content-type", "")
    if kind.lower().startswith(("application/x-www-form-urlencoded", "multipart/form-data")):
        return parse_form(kind, body)
    query = request.query_params
    words = {name: FormPart(query.get(name, "").encode()) for name in ("as", "release", "form")}
    return {"data": FormPart(bytes(body)), **words}


def _input_of(fields: dict[str, FormPart]) -> tuple[FormPart, dict[str, str], str]:
    """The bytes to decode, the options, and the text that the form repeats. A file takes precedence over text."""

    def word(name: str) -> str:
        field = fields.get(name, FormPart(b""))
        return field.content[:_MAX_WORD_BYTES].decode(errors="replace").strip()

    upload = fields.get("file")
    has_file = upload is not None and bool(upload.content)
    part = upload if has_file and upload is not None else fields.get("data", FormPart(b""))
    form = word("form") if word("form") in FORMS else "auto"
    options = {"name": word("as"), "release": word("release"), "form": form}
    options["file"] = (part.file or "") if has_file else ""
    # More isn't shown anyway, and text takes up to four times the memory.
    shown = "" if has_file else part.content[: _MAX_ECHO_BYTES + 1].decode(errors="replace")
    return part, options, shown
