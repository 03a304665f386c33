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
    """Removes comments and what only people need. None of our strings has such characters."""
    text = re.sub(rb"\s+", b" ", re.sub(rb"/\*.*?\*/", b"", style, flags=re.DOTALL))
    text = re.sub(rb" ?([{};,>]) ?", rb"\1", text).replace(b";}", b"}").replace(b" !important", b"!important")
    # A blank before a colon is part of a selector, one after it never is.
    text = text.replace(b": ", b":")
    return re.sub(rb"#([0-9a-f])\1([0-9a-f])\2([0-9a-f])\3\b", rb"#\1\2\3", text).strip()


# Strings, regular expressions (after a bracket or an operator), comments.
_LITERAL = re.compile(
    rb"""("(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`"""
    rb"""|(?:(?<=\()|(?<=[>&|=,:] ))/(?![/*])(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n])+/[a-z]*|//[^\n]*|/\*.*?\*/)""",
    re.DOTALL,
)


def smaller_script(script: bytes) -> bytes:
    """Removes comments, indentation and blanks. Every statement of ours ends with a semicolon or a brace."""
    parts = _LITERAL.split(_LITERAL.sub(lambda match: b"" if match[0][:2] in (b"//", b"/*") else match[0], script))
    # Literals go back in at the end, whatever they contain.
    code = b"\0".join(re.sub(rb"[ \t]*\n\s*", b"\n", re.sub(rb"[ \t]+", b" ", part)) for part in parts[::2])
    code = re.sub(rb" ?([{}()\[\];,:?=<>!&|*]) ?", rb"\1", code)
    code = re.sub(rb"(?<=[;,{(\[])\n+|\n+(?=[})\].?:&|])", b"", code)
    code = re.sub(rb"\n\n+", b"\n", code)
    literals = iter(parts[1::2])
    return re.sub(rb"\0", lambda _: next(literals), code).strip()
