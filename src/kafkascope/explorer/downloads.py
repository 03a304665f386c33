"""Makes files for other programs: the schema of every message as typed JSON and as JSON Schema, and the sitemap."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from kafkascope.errors import UsageError
from kafkascope.explorer.facts.json_schema import json_schema
from kafkascope.explorer.pages import record
from kafkascope.explorer.pages.message import find_layout
from kafkascope.schema.layouts.layout import Layout
from kafkascope.schema.layouts.typed_json import typed_json
from kafkascope.schema.names import clip

SITEMAP = "sitemap.xml"
# Kinds of pages with downloads.
DOWNLOADS_OF = ("message", "record")
_KINDS = ("request", "response", "header", *record.KINDS_HERE)


@dataclass(frozen=True, slots=True)
class Download:
    """`path` and `make` take the parameters of a message's page: `name` and `version`."""

    path: str
    media_type: str
    write: Callable[[Layout], str]

    def make(self, name: str, version: str) -> str:
        return self.write(find_layout(name, version, _KINDS))


DOWNLOADS = (
    Download("schema/{name}/{version}.txt", "text/plain; charset=utf-8", lambda of: typed_json(of) + "\n"),
    Download(
        "schema/{name}/{version}.json",
        "application/schema+json",
        lambda of: json.dumps(json_schema(of), ensure_ascii=False, indent=1) + "\n",
    ),
)


def public_address(text: str) -> str:
    """Ends with a slash."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise UsageError(f"{clip(text)} isn't the address of a site; write it as https://example.org/kafka/")
    return text if text.endswith("/") else f"{text}/"


def sitemap(root: str, addresses: Iterator[str]) -> str:
    """`root` is the public address of the site: a sitemap has no relative addresses."""
    lines = "".join(f"<url><loc>{escape(root + address)}</loc></url>\n" for address in addresses)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        f"{lines}</urlset>\n"
    )
