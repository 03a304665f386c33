"""Builds the files that every page shares: style, script, icon and search index."""

from functools import cache
from importlib.resources import files

# Name at the root of the site to its media type.
ASSETS = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "search.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


@cache
def asset(name: str) -> bytes:
    if name == "search.js":
        from kafkascope.explorer.facts.search import index_script

        return index_script().encode()
    return files("kafkascope.explorer").joinpath("static", name).read_bytes()
