"""The body of a form in, its fields out: url-encoded or multipart; what is neither is an `InputError`.

The body is whole and small already: who reads it counts.
"""

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl

from kafkascope.errors import InputError

# The decode page has five.
MAX_FIELDS = 16
_BOUNDARY = re.compile(r'boundary=(?:"([^"]{1,70})"|([^\s;]{1,70}))')
_NAME = re.compile(rb'\bname="([^"]*)"')
_FILE = re.compile(rb'\bfilename="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Part:
    """`file` is the name that an upload has, None for a field that is no file."""

    content: bytes
    file: str | None = None


def parse_form(content_type: str, body: bytes) -> dict[str, Part]:
    """The first part of each name."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        return _urlencoded(body)
    if kind == "multipart/form-data":
        return _multipart(content_type, body)
    raise InputError(f"a form is url-encoded or multipart, this is {kind[:60] or 'neither'}")


def _urlencoded(body: bytes) -> dict[str, Part]:
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise InputError("the form cannot be read: it is no UTF-8, or has too many fields") from None
    found: dict[str, Part] = {}
    for name, value in pairs:
        found.setdefault(name, Part(value.encode()))
    return found


def _multipart(content_type: str, body: bytes) -> dict[str, Part]:
    match = _BOUNDARY.search(content_type)
    if match is None:
        raise InputError("the form cannot be read: it names no boundary")
    mark = b"--" + (match[1] or match[2]).encode()
    # The first mark has no line end before it.
    pieces = (b"\r\n" + body).split(b"\r\n" + mark, MAX_FIELDS + 2)
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise InputError("the form cannot be read: it is cut off, or has too many fields")
    found: dict[str, Part] = {}
    for piece in pieces[1:-1]:
        head, blank, content = piece.partition(b"\r\n\r\n")
        name = _NAME.search(head)
        if not blank or name is None:
            raise InputError("the form cannot be read: a field has no name")
        file = _FILE.search(head)
        said = None if file is None else file[1].decode(errors="replace")
        found.setdefault(name[1].decode(errors="replace"), Part(content, said))
    return found
