"""Parses the body of a form, url-encoded or multipart. Anything else is an `InputError`.

Each field is copied once from the complete body, and nothing else is copied.
"""

import re
from binascii import a2b_qp
from dataclasses import dataclass

from kafkascope.errors import InputError
from kafkascope.explorer.server.upload import TooLarge
from kafkascope.limits import MAX_URLENCODED_BYTES

# The decode page has five.
MAX_FIELDS = 16
# Name, file name and type of a field.
_MAX_HEAD_BYTES = 8_192
_BOUNDARY = re.compile(r'boundary=(?:"([^"]{1,70})"|([^\s;]{1,70}))')
_NO_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_PORTION_BYTES = 4_096
_NAME = re.compile(rb'\bname="([^"]*)"')
_FILE = re.compile(rb'\bfilename="([^"]*)"')


@dataclass(frozen=True, slots=True)
class FormPart:
    """`file` is the name of an upload, None for a field that isn't a file."""

    content: bytes
    file: str | None = None


def parse_form(content_type: str, body: bytes | bytearray) -> dict[str, FormPart]:
    """The first field of each name."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        return _urlencoded(body)
    if kind == "multipart/form-data":
        return _multipart(content_type, body)
    raise InputError(f"a form must be url-encoded or multipart; this is {kind[:60] or 'neither'}")


def _urlencoded(body: bytes | bytearray) -> dict[str, FormPart]:
    if len(body) > MAX_URLENCODED_BYTES:
        raise TooLarge(
            f"a url-encoded form may have {MAX_URLENCODED_BYTES} bytes; this one has {len(body)}: send it as multipart"
        )
    fields = bytes(body).split(b"&", MAX_FIELDS)
    if len(fields) > MAX_FIELDS:
        raise InputError("the form cannot be read: it has too many fields")
    parts: dict[str, FormPart] = {}
    for field in filter(None, fields):
        name, _, value = field.partition(b"=")
        try:
            parts.setdefault(_unescaped(name), FormPart(_unescaped(value).encode()))
        except UnicodeDecodeError:
            raise InputError("the form cannot be read: it isn't UTF-8") from None
    return parts


def _unescaped(text: bytes) -> str:
    """In chunks: Python's own function makes an object per escape, which takes 77 times its size and blocks all other
    pages meanwhile."""
    text.decode()
    text = text.replace(b"+", b" ")
    unescaped, at = bytearray(), 0
    while at < len(text):
        end = at + _PORTION_BYTES
        # Never cuts an escape.
        end -= next((back for back in (1, 2) if text[end - back : end - back + 1] == b"%" and end < len(text)), 0)
        # A % that doesn't begin an escape is literal. The rest is quoted-printable with another sign.
        portion = _NO_ESCAPE.sub(b"%25", text[at:end])
        unescaped += a2b_qp(portion.replace(b"=", b"=3D").replace(b"%", b"="))
        at = end
    return unescaped.decode(errors="replace")


def _multipart(content_type: str, body: bytes | bytearray) -> dict[str, FormPart]:
    match = _BOUNDARY.search(content_type)
    if match is None:
        raise InputError("the form cannot be read: it names no boundary")
    mark = b"\r\n--" + (match[1] or match[2]).encode()
    # The first boundary may have no line end before it.
    at = len(mark) - 2 if body.startswith(mark[2:]) else _after(body, mark, 0)
    parts: dict[str, FormPart] = {}
    view = memoryview(body)
    for _ in range(MAX_FIELDS + 1):
        if body.startswith(b"--", at):
            return parts
        end = _after(body, mark, at) - len(mark)
        head_end = body.find(b"\r\n\r\n", at, min(end, at + _MAX_HEAD_BYTES))
        head = bytes(view[at : max(head_end, at)])
        name = _NAME.search(head)
        if name is None:
            raise InputError("the form cannot be read: a field has no name")
        file = _FILE.search(head)
        file_name = None if file is None else file[1].decode(errors="replace")
        parts.setdefault(name[1].decode(errors="replace"), FormPart(bytes(view[head_end + 4 : end]), file_name))
        at = end + len(mark)
    raise InputError("the form cannot be read: it has too many fields")


def _after(body: bytes | bytearray, mark: bytes, at: int) -> int:
    """The end of the next boundary."""
    start = body.find(mark, at)
    if start < 0:
        raise InputError("the form cannot be read: it is cut off")
    return start + len(mark)
