"""Renders pages as HTML or JSON. Everything that a page shows is escaped."""

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup

from kafkascope import __version__
from kafkascope.explorer.address import address, message_page, relative, schema_file
from kafkascope.explorer.facts.error_groups import error_groups
from kafkascope.explorer.facts.hex_rows import hex_rows
from kafkascope.explorer.facts.json_lines import error_in, json_lines
from kafkascope.explorer.facts.sequence import sequence_svg
from kafkascope.explorer.kinds import KINDS
from kafkascope.explorer.page import Kind, Page
from kafkascope.explorer.prose_links import ProseLinks, escape_text

# Kinds of pages in the navigation, with their names there.
NAVIGATION = {
    "home": "APIs",
    "releases": "Releases",
    "upgrades": "Upgrades",
    "errors": "Errors",
    "records": "Records",
    "batches": "Batches",
    "decode": "Decode",
    "manual": "Manual",
    "lake": "Lake",
}


# Elements around which browsers ignore line ends.
_BLOCKS = (
    "body|caption|dd|details|dl|div|dt|footer|form|h[1-6]|head|header|html|li|link|main|meta|nav|ol|p|script|section|summary|"
    "table|tbody|td|th|thead|title|tr|ul"
)
_LINE_END = re.compile(rf"(</?(?:{_BLOCKS})\b[^<>]*>)\n+(?=[<{{])|(?<=[>}}])\n+(?=</?(?:{_BLOCKS})\b)")


# HTML implies these end tags: of list items, and of everything in a table.
_IMPLIED = re.compile(r"</(?:li|dt|dd|td|th|tr|thead|tbody|option)>")


class _Compact(Extension):
    """Removes from templates what browsers don't need: line ends between elements, and implied end tags."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:  # noqa: ARG002
        return _IMPLIED.sub("", _LINE_END.sub(lambda match: match[1] or "", source))


@cache
def templates() -> Environment:
    environment = Environment(
        extensions=[_Compact],
        loader=PackageLoader("kafkascope.explorer", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "error_groups": error_groups,
        "hex_rows": hex_rows,
        "json_lines": json_lines,
        "sequence_svg": sequence_svg,
        "text": escape_text,
    }
    environment.globals["error_in"] = error_in
    environment.globals["software"] = f"kafkascope {__version__}"
    return environment


class Renderer:
    """Renders pages of these kinds, for the server or the static site."""

    def __init__(self, kinds: tuple[Kind, ...] = KINDS, *, static: bool = False, public: str = "") -> None:
        """`public` is the address of the site's folder, if it's known."""
        self.kinds = {kind.name: kind for kind in kinds}
        self.public = public
        self.static = static
        self._written: dict[str, frozenset[str]] = {}

    def html(self, kind: Kind, parameters: dict[str, str], page: Page | None = None) -> str:
        """`page` is passed if it's already made."""
        return self.render(kind.template, address(kind, parameters), page or kind.make(**parameters), kind.name)

    def render(self, template: str, here: str, page: Page, kind: str = "") -> str:
        """Renders a page at the address `here`. It needs no kind: a 404 has none."""

        def link(kind: str, /, **parameters: Any) -> str | None:
            return self.link(here, kind, parameters)

        def anchor(text: str, kind: str, /, **parameters: Any) -> Markup:
            return _anchor(text, self.link(here, kind, parameters))

        context = {
            "title": page.title,
            "description": page.description,
            "facts": page.facts,
            "kind": kind,
            "here": here,
            "static": self.static,
            "link": link,
            "a": anchor,
            "say": ProseLinks(link, here, page.facts.get("fields") if kind in ("message", "record") else None),
            "message_link": lambda name, version: self.link(here, *message_page(name, version)) or "",
            "asset": lambda name: relative(here, name),
            "kinds": self.kinds,
            "manual": lambda: _manual(page.facts, here, link),
            "navigation": NAVIGATION,
            "download": lambda facts, form: relative(here, schema_file(facts, form)),
            "public": f"{self.public}{here}" if self.public else None,
        }
        return templates().get_template(template).render(context)

    def link(self, here: str, name: str, parameters: dict[str, Any]) -> str | None:
        """None if the page doesn't exist: this site lacks its kind or its file."""
        kind = self.kinds.get(name)
        if kind is None:
            return None
        fragment = parameters.pop("fragment", "")
        target = address(kind, parameters)
        if self.static and target not in self._files(kind):
            return None
        return relative(here, target) + (f"#{fragment}" if fragment else "")

    def _files(self, kind: Kind) -> frozenset[str]:
        if kind.name not in self._written:
            self._written[kind.name] = frozenset(address(kind, parameters) for parameters in kind.every())
        return self._written[kind.name]


def _anchor(text: str, target: str | None) -> Markup:
    """A link, or the bare text without a target."""
    return Markup('<a href="{}">{}</a>').format(target, text) if target else Markup("{}").format(text)


def _manual(facts: dict[str, Any], here: str, link: Callable[..., str | None]) -> Markup:
    # The library takes its time to load, and most pages do without.
    from kafkascope.explorer.manual_html import manual_html

    return manual_html(facts, here, link)


def json_text(page: Page) -> str:
    written = {"title": page.title, "description": page.description, **page.facts}
    return json.dumps(written, ensure_ascii=False, indent=1) + "\n"


def render(kind: Kind, parameters: dict[str, str], *, static: bool) -> str:
    return Renderer(static=static).html(kind, parameters)


def json_of(kind: Kind, parameters: dict[str, str]) -> str:
    return json_text(kind.make(**parameters))
