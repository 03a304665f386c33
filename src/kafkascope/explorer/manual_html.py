"""Renders a page of the manual from its Markdown, in the look of the explorer."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from posixpath import dirname, join, normpath
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup

from kafkascope.explorer.address import relative
from kafkascope.explorer.facts.manual import ManualPage, headings, manual_downloads, manual_pages
from kafkascope.explorer.prose_links import Link, ProseLinks
from kafkascope.manual_files import manual_file

# What a line of a transcript begins with where somebody types.
_PROMPTS = ("$ ", ">>> ", "... ")
PICTURES = ("docs/report.png", "docs/explorer.png")


def manual_html(facts: dict[str, Any], here: str, link: Link) -> Markup:
    """The page without its title."""
    text = facts["markdown"]
    tokens = _markdown().parse(text)
    if tokens and tokens[0].tag == "h1":
        tokens = tokens[3:]
    places = [heading.place for heading in headings(text) if heading.level > 1]
    state = _State(ProseLinks(link, here), _Targets(facts["file"], here, link), places)
    body: str = _markdown().renderer.render(tokens, _markdown().options, {"state": state})
    return Markup(body + "</section>" * len(state.sections))  # noqa: S704 - every text of it is escaped


@dataclass(frozen=True, slots=True)
class _Targets:
    """Where the links of one file lead."""

    file: str
    here: str
    link: Link

    def __call__(self, address: str) -> str | None:
        """None for files that aren't part of the manual."""
        if "://" in address:
            return address
        fragment = address.partition("#")[2]
        file = _file_of(self.file, address)
        if file == self.file:
            return f"#{fragment}" if fragment else None
        page = _page_of(self.file, address)
        if page is not None:
            return self.link("manual_page", name=page.name, fragment=fragment)
        return relative(self.here, file) if file in manual_downloads() or file in PICTURES else None


def _file_of(here: str, address: str) -> str:
    path = address.partition("#")[0]
    return normpath(join(dirname(here), path)) if path else here


def _page_of(here: str, address: str) -> ManualPage | None:
    file = _file_of(here, address)
    return next((page for page in manual_pages().values() if page.file == file), None)


@dataclass(slots=True)
class _State:
    """`sections` are the levels of the open sections, `links` whether each open link is one here."""

    prose: ProseLinks
    target: _Targets
    places: list[str]
    sections: list[int] = field(default_factory=list)
    links: list[bool] = field(default_factory=list)
    heading: str = ""
    tables: int = 0
    blocks: int = 0


class _Renderer(RendererHTML):
    """The methods are called by the types of tokens."""

    def heading_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:  # noqa: ARG002
        state: _State = env["state"]
        level = int(tokens[idx].tag[1:])
        closed = [depth for depth in state.sections if depth >= level]
        state.sections = [*(depth for depth in state.sections if depth < level), level]
        state.heading, state.tables = tokens[idx + 1].content.replace("`", ""), 0
        place = escape(state.places.pop(0))
        return f'{"</section>" * len(closed)}<section id="{place}">\n<{tokens[idx].tag}>'

    def code_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:  # noqa: ARG002
        state: _State = env["state"]
        return str(state.prose.code(tokens[idx].content, linked=not any(state.links)))

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:  # noqa: ARG002
        return _code_block(tokens[idx].content, env["state"])

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:  # noqa: ARG002
        return _code_block(tokens[idx].content, env["state"])

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:  # noqa: ARG002
        state: _State = env["state"]
        state.tables += 1
        name = f"{state.heading}, table {state.tables}" if state.tables > 1 else f"Table: {state.heading}"
        return f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}"><table>\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:  # noqa: ARG002
        return "</table></div>\n"

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:  # noqa: ARG002
        """An empty head names nothing."""
        return "<th>" if tokens[idx + 1].content else "<td>"

    def th_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:  # noqa: ARG002
        return "</th>" if tokens[idx - 1].content else "</td>"

    def td_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:  # noqa: ARG002
        """Without the inline style of aligned columns, which the policy of pages refuses."""
        return "<td>"

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:  # noqa: ARG002
        state: _State = env["state"]
        address = str(tokens[idx].attrs["href"])
        target = state.target(address)
        state.links.append(target is not None)
        page = _page_of(state.target.file, address)
        if page is not None and tokens[idx + 1].content.rpartition("/")[2] == page.file.rpartition("/")[2]:
            # A file's name becomes the title of its page.
            tokens[idx + 1].content = page.title
        if target is None:
            return ""
        more = ' rel="external noreferrer"' if "://" in target else ""
        more += ' download=""' if target.endswith(tuple(manual_downloads())) else ""
        return f'<a href="{escape(target)}"{more}>'

    def link_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:  # noqa: ARG002
        return "</a>" if env["state"].links.pop() else ""

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:  # noqa: ARG002
        token, state = tokens[idx], env["state"]
        source = state.target(str(token.attrs["src"]))
        if source is None:
            return escape(token.content)
        # Its place is kept free until it's loaded: links to places further down land there.
        width, height = _size(source)
        return f'<img src="{escape(source)}" alt="{escape(token.content)}" width="{width}" height="{height}">'

    def html_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:  # noqa: ARG002
        """Marks for our own tools are comments; anything else shows as it's written."""
        content = tokens[idx].content.strip()
        return "" if content.startswith("<!--") and content.endswith("-->") else escape(content)

    def html_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return self.html_block(tokens, idx, options, env)


@cache
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark", renderer_cls=_Renderer).enable("table")


def _code_block(content: str, state: _State) -> str:
    """The button copies what is typed in a transcript, and everything of another block."""
    state.blocks += 1
    place = f"code-{state.blocks}"
    lines = "\n".join(_line(line) for line in content.rstrip("\n").split("\n"))
    return (
        f'<div class="code"><pre id="{place}" tabindex="0"><code>{lines}\n</code></pre>'
        f'<button type="button" class="copy" data-copy="{place}" hidden>Copy</button></div>\n'
    )


def _line(line: str) -> str:
    prompt = next((prompt for prompt in _PROMPTS if line.startswith(prompt)), "")
    return f"{escape(prompt)}<b>{escape(line.removeprefix(prompt))}</b>" if prompt else escape(line)


@cache
def _size(source: str) -> tuple[int, int]:
    """Width and height of a PNG file."""
    head = manual_file(f"docs/{source.rpartition('/')[2]}").read_bytes()[16:24]
    width, height = struct.unpack(">II", head)
    return width, height
