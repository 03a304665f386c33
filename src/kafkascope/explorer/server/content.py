"""Sends pages and files with an ETag: compressed if the client accepts gzip, and as 304 if it already has them."""

import re
import zlib
from functools import lru_cache
from hashlib import blake2b

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

# Less fits into one packet anyway.
_LEAST_BYTES = 1_000
_TEXT = ("text/", "application/json", "application/schema+json", "application/atom+xml", "image/svg")
# 9 takes twice as long and saves 1 %.
_LEVEL = 6
# A gzip header instead of zlib's.
_GZIP_WINDOW = 16 + zlib.MAX_WBITS


class Content:
    """One page or file. The first request that accepts gzip compresses it; both forms are kept with it."""

    def __init__(
        self, content: str | bytes, media_type: str, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        self._raw = content.encode() if isinstance(content, str) else content
        self._media_type = media_type
        self._status = status
        self._headers = {**(headers or {}), "Vary": "Accept-Encoding"}
        self._tag = blake2b(self._raw, digest_size=12).hexdigest()
        self._can_shrink = len(self._raw) >= _LEAST_BYTES and media_type.startswith(_TEXT)
        self._plain = self._response(self._raw, self._tag)
        self._packed: Response | None = None

    async def response(self, request: Request) -> Response:
        response = self._plain
        if self._can_shrink and accepts_gzip(request.headers.get("accept-encoding", "")):
            if self._packed is None:
                self._packed = await run_in_threadpool(self._pack)
            response = self._packed
        tag = response.headers["etag"]
        if self._status == 200 and request.headers.get("if-none-match") == tag:
            # With all headers: a browser replaces those that it keeps with the page, such as the report's policy.
            return Response(status_code=304, headers={**self._headers, "ETag": tag})
        return response

    def _pack(self) -> Response:
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
        # Another form of a page has another tag (RFC 9110, 8.8.3).
        response = self._response(packer.compress(self._raw) + packer.flush(), f"{self._tag}-gzip")
        response.headers["Content-Encoding"] = "gzip"
        return response

    def _response(self, content: bytes, tag: str) -> Response:
        return Response(content, self._status, {**self._headers, "ETag": f'"{tag}"'}, self._media_type)


@lru_cache
def accepts_gzip(header: str) -> bool:
    """`gzip, br` and `*` accept it, `gzip;q=0` refuses it."""
    accepted = {}
    for item in header.lower().split(","):
        name, _, quality = item.partition(";")
        accepted[name.strip()] = re.fullmatch(r"\s*q\s*=\s*0(\.0*)?\s*", quality) is None
    return accepted.get("gzip", accepted.get("*", False))
