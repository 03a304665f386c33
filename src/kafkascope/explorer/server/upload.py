"""Reads the body of a request, within the decode page's limits on size and time.

An upload that is too large is refused by its announced length before a byte is read, or by counting if the length isn't
announced."""

import asyncio

from starlette.requests import Request

from kafkascope.errors import InputError
from kafkascope.limits import MAX_UPLOAD_BYTES

# Besides the file, a form has a few short fields and their boundaries.
_FORM_BYTES = 65_536
_MAX_BODY_BYTES = MAX_UPLOAD_BYTES + _FORM_BYTES
# The least that a request counts: its connection, task and page.
_LEAST_BYTES = 65_536


class TooLarge(InputError):
    """the upload has 1073741824 bytes; the decode page takes 16777216"""


class TooSlow(InputError):
    """the upload took more than 30 s"""


def announced_bytes(request: Request) -> int:
    """The memory it may take: the announced length, or else the limit."""
    length = request.headers.get("content-length", "")
    if not (length.isascii() and length.isdigit()):
        return _MAX_BODY_BYTES
    if int(length[:20]) > _MAX_BODY_BYTES:
        raise TooLarge(f"the upload has {length[:20]} bytes; the decode page takes {MAX_UPLOAD_BYTES}")
    return max(int(length), _LEAST_BYTES)


async def read_body(request: Request, seconds: float) -> bytearray:
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > _MAX_BODY_BYTES:
                    raise TooLarge(
                        f"the upload has more than {_MAX_BODY_BYTES} bytes; the decode page takes {MAX_UPLOAD_BYTES}"
                    )
    except TimeoutError:
        raise TooSlow(f"the upload took more than {seconds:g} s") from None
    return body
