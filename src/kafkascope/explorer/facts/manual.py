"""Reads the manual: docs/, the README, CONTRIBUTING and the changelog, in the order of the README's map."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafkascope.errors import NotFoundError
from kafkascope.manual_files import manual_text
from kafkascope.schema.names import clip

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_START = "README.md"
_START_TITLE, _START_ABOUT = "Install and quick start", "what kafkascope is, how to install it, first commands"
_MAP = "Docs"


@dataclass(frozen=True, slots=True)
class ManualPage:
    """`file` is a path of the repository: `docs/check.md`. `group` is that of the README's map, "" for the README."""

    name: str
    file: str
    title: str
    about: str
    group: str


@dataclass(frozen=True, slots=True)
class Heading:
    """`place` is the id of its section, as GitHub names it."""

    level: int
    title: str
    place: str


@cache
def manual_pages() -> dict[str, ManualPage]:
    """By name: the README, then the pages of its map."""
    pages = [ManualPage("README", _START, _START_TITLE, _START_ABOUT, "")]
    pages += [
        ManualPage(Path(file).stem, file, next(headings(manual_text(file))).title, about, group)
        for file, about, group in _mapped()
        if file.endswith(".md")
    ]
    return {page.name: page for page in pages}


@cache
def manual_downloads() -> dict[str, str]:
    """Files of the map that aren't pages, with what they are."""
    return {file: about for file, about, _ in _mapped() if not file.endswith(".md")}


@cache
def manual_groups() -> dict[str, tuple[str, ...]]:
    """The files of each group of the map."""
    groups: dict[str, tuple[str, ...]] = {}
    for file, _, group in _mapped():
        groups[group] = (*groups.get(group, ()), file)
    return groups


@cache
def _mapped() -> tuple[tuple[str, str, str], ...]:
    """File, description and group of each row of the README's map."""
    rows: list[tuple[str, str, str]] = []
    cells: list[Token] = []
    inside, group = False, ""
    tokens = _markdown().parse(manual_text(_START))
    for before, token in pairwise(tokens):
        if before.type == "heading_open":
            inside = token.content == _MAP if before.tag == "h2" else inside
            group = token.content
        elif before.type == "tr_open":
            cells = []
        elif before.type == "td_open":
            cells.append(token)
        elif before.type == "tr_close" and inside and len(cells) == 2:
            rows.append((_linked(cells[0]), cells[1].content, group))
    return tuple(rows)


def _linked(cell: "Token") -> str:
    return next(str(part.attrs["href"]) for part in cell.children or () if part.type == "link_open")


@cache
def _markdown(*, inline: bool = True) -> "MarkdownIt":
    """Without `inline` it reads the blocks of a page, and leaves the text of each as it is."""
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark").enable("table")
    return reader if inline else reader.disable("inline")


def headings(text: str) -> Iterator[Heading]:
    """All of a page, its title first."""
    seen: Counter[str] = Counter()
    for before, token in pairwise(_markdown(inline=False).parse(text)):
        if before.type == "heading_open":
            place = slug(token.content)
            seen[place] += 1
            number = f"-{seen[place] - 1}" if seen[place] > 1 else ""
            yield Heading(int(before.tag[1:]), token.content.replace("`", ""), f"{place}{number}")


def slug(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def find_page(name: str) -> ManualPage:
    pages = manual_pages()
    if name not in pages:
        raise NotFoundError(f"the manual has no page {clip(name)}; /docs/index.html lists its pages")
    return pages[name]


def contents(text: str) -> list[dict[str, Any]]:
    """Headings as a tree of two levels, without the title of the page."""
    tree: list[dict[str, Any]] = []
    for heading in headings(text):
        entry = {"title": heading.title, "place": heading.place, "parts": []}
        if heading.level == 2:
            tree.append(entry)
        elif heading.level == 3 and tree:
            tree[-1]["parts"].append(entry)
    return tree
