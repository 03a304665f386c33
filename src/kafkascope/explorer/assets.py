"""Builds the files that pages share: style, script, icon, search index, release feed, and files of the manual."""

import re
from functools import cache
from importlib.resources import files

# Names at the root of the site, with their media types.
ASSETS = {
    "page.css": "text/css; charset=utf-8",
    "manual.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "search.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "releases.xml": "application/atom+xml; charset=utf-8",
    "docs/report.png": "image/png",
    "docs/explorer.png": "image/png",
    "docs/explore.ipynb": "application/x-ipynb+json",
}


@cache
def asset(name: str) -> bytes:
    if name == "search.js":
        from kafkascope.explorer.facts.search.script import index_script

        return smaller_script(index_script().encode())
    if name == "releases.xml":
        from kafkascope.explorer.facts.release_feed import release_feed

        return release_feed().encode()
    if name.startswith("docs/"):
        from kafkascope.manual_files import manual_file

        return manual_file(name).read_bytes()
    raw = files("kafkascope.explorer").joinpath("static", name).read_bytes()
    return {"page.css": _smaller_style, "manual.css": _smaller_style, "page.js": smaller_script}.get(name, bytes)(raw)


def _smaller_style(style: bytes) -> bytes:
    """Removes comments and the blanks that only people need."""
    return re.sub(rb"\s*([{};,])\s*", rb"\1", re.sub(rb"/\*.*?\*/", b"", style, flags=re.DOTALL)).strip()


def smaller_script(script: bytes) -> bytes:
    """Removes comment lines and indentation. None of our string literals spans lines."""
    return re.sub(rb"^[ \t]*(?://[^\n]*)?\n?", b"", script, flags=re.MULTILINE)
