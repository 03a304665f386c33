"""The decode page: the submitted bytes as exchanges, JSON and annotated bytes, or why they can't be read.

The static site has the page without the form: decoding runs in a local server or on the command line.
"""

from typing import Any

from kafkascope.codec.text.byte_text import FORMS
from kafkascope.explorer.page import Kind, Page
from kafkascope.limits import MAX_DECODE_SECONDS, MAX_LINK_BYTES, MAX_SHOWN_PIECES, MAX_UPLOAD_BYTES
from kafkascope.schema.releases import releases

# Longest text that the form repeats: a byte takes up to five characters in a dump.
MAX_ECHO_CHARACTERS = 5 * MAX_LINK_BYTES
_EXAMPLE = "0000001d000c000000000007000361707000056f726465720000000c00036d2d31"


def make() -> Page:
    return decode_page()


def decode_page(
    *,
    text: str = "",
    name: str = "",
    release: str = "",
    form: str = "auto",
    file: str = "",
    answer: dict[str, Any] | None = None,
    problem: str | None = None,
) -> Page:
    """`answer` is the worker's result, `problem` the reason if there is none."""
    result = answer or {}
    decoded = result.get("decoded")
    title = "Decode"
    if decoded and decoded["message"]:
        version = "" if decoded["version"] is None else f" v{decoded['version']}"
        title = f"Decoded: {decoded['message']}{version}"
    elif result.get("recording"):
        title = "Decoded: a recording"
    facts = {
        "given": {
            "text": text if len(text) <= MAX_ECHO_CHARACTERS else "",
            "tooLongToShow": len(text) > MAX_ECHO_CHARACTERS,
            "as": name,
            "release": release,
            "form": form,
            "file": file,
        },
        "decoded": decoded,
        "recording": result.get("recording"),
        "readAs": result.get("readAs"),
        "permalink": result.get("permalink"),
        "problem": problem,
        "command": _command(name, release),
        "forms": list(FORMS),
        "releases": [release.name for release in reversed(releases())],
        "limits": {
            "bytes": MAX_UPLOAD_BYTES,
            "seconds": MAX_DECODE_SECONDS,
            "link": MAX_LINK_BYTES,
            "pieces": MAX_SHOWN_PIECES,
        },
        "example": _EXAMPLE,
    }
    return Page(title, facts, "Hex, base64, a hex dump or a small recording, decoded byte by byte.")


def _command(name: str, release: str) -> str:
    """The same on the command line, without the typed text, which may be anything."""
    is_plain = name and all(letter.isalnum() or letter in ":_-" for letter in name)
    option = f" --as {name}" if is_plain else ""
    at = f" --release {release}" if release and release.replace(".", "").isdigit() else ""
    return f"kafkascope decode{option}{at} @FILE"


KIND = Kind("decode", "decode.html", "decode.html", make, lambda: ({},))
