"""Builds HTML and SVG elements. Every text and attribute is escaped, so that a name from the wire stays text."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from kafkascope.formatting import printable


@dataclass(frozen=True, slots=True)
class Html:
    """Finished markup, made only by `el`, `join` and the pages' own files."""

    text: str

    def __html__(self) -> str:
        """Templates must not escape it."""
        return self.text


Child = Html | str | int | float | None | Iterable["Child"]
_Attribute = str | int | float | bool | None

NO_HTML = Html("")
# Elements without an end tag.
_VOID = frozenset({"meta", "input", "br", "hr", "wbr"})


def el(tag: str, *children: Child, **attributes: _Attribute) -> Html:
    """`el("rect", x=1, class_="bar")`. Underscores become hyphens, except at the end; None and False are left out."""
    start = f"<{tag}{''.join(_attribute(name, value) for name, value in attributes.items())}>"
    if tag in _VOID:
        return Html(start)
    return Html(f"{start}{join(children).text}</{tag}>")


def join(children: Iterable[Child]) -> Html:
    return Html("".join(map(_text, children)))


def _text(child: Child) -> str:
    if isinstance(child, Html):
        return child.text
    if child is None:
        return ""
    if isinstance(child, str):
        return escape(printable(child), quote=False)
    if isinstance(child, int | float):
        return coordinate(child)
    return join(child).text


def _attribute(name: str, value: _Attribute) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = value if isinstance(value, str) else coordinate(value)
    return f' {name}="{escape(printable(text))}"'


def coordinate(number: float) -> str:
    """Rounds to a tenth of a pixel."""
    text = f"{number:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text
