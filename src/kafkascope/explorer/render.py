"""Renders pages as HTML or JSON. Everything that a page shows is escaped."""

import json
import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kafkascope import __version__
from kafkascope.explorer.address import address, message_page, relative
from kafkascope.explorer.facts.json_lines import json_lines
from kafkascope.explorer.facts.sequence import sequence_svg
from kafkascope.explorer.kinds import KINDS
from kafkascope.explorer.page import Kind, Page


@cache
def templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("kafkascope.explorer", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"json_lines": json_lines, "prose": prose, "sequence_svg": sequence_svg}
    environment.globals["software"] = f"kafkascope {__version__}"
    return environment


class Renderer:
    """Pages of these kinds, for the server or for the static site."""

    def __init__(self, kinds: tuple[Kind, ...] = KINDS, *, static: bool = False) -> None:
        self.kinds = {kind.name: kind for kind in kinds}
        self.static = static
        self._written: dict[str, frozenset[str]] = {}

    def html(self, kind: Kind, parameters: dict[str, str], page: Page | None = None) -> str:
        """`page` where it is made already."""
        return self.render(kind.template, address(kind, parameters), page or kind.make(**parameters), kind.name)

    def render(self, template: str, here: str, page: Page, kind: str = "") -> str:
        """A page that is at `here`, which needs no kind: a 404 has none."""

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
            "message_link": lambda name, version: self.link(here, *message_page(name, version)) or "",
            "asset": lambda name: relative(here, name),
            "kinds": self.kinds,
        }
        return templates().get_template(template).render(context)

    def link(self, here: str, name: str, parameters: dict[str, Any]) -> str | None:
        """None where there is no such page: a kind that this site lacks, or one that is not among its files."""
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
    """A link, or the bare text where there is nothing to link to."""
    return Markup('<a href="{}">{}</a>').format(target, text) if target else Markup("{}").format(text)


def prose(text: str) -> Markup:
    """Our prose marks code with backticks."""
    parts = re.split(r"`([^`]*)`", text)
    plain, code = Markup("{}"), Markup("<code>{}</code>")
    return Markup("").join((code if at % 2 else plain).format(part) for at, part in enumerate(parts))


def json_text(page: Page) -> str:
    written = {"title": page.title, "description": page.description, **page.facts}
    return json.dumps(written, ensure_ascii=False, indent=1) + "\n"


def render(kind: Kind, parameters: dict[str, str], *, static: bool) -> str:
    return Renderer(static=static).html(kind, parameters)


def json_of(kind: Kind, parameters: dict[str, str]) -> str:
    return json_text(kind.make(**parameters))
