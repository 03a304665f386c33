"""Lays out the report's figures and tables: title, legend, picture, and the same data as a table."""

import re
from collections.abc import Iterable, Mapping, Sequence

from kafkascope.markup import NO_HTML, Child, Html, el

# Longest table in a picture's details. Longer ones are read from the marts.
_MOST_ROWS = 200
# A column is at least as wide as a word of this many letters.
_LONGEST_WORD = 14
# From this many columns on, a table scrolls in a narrow window, instead of breaking every word.
_WIDE = 4


def figure(
    name: str,
    title: str,
    note: str,
    picture: Html,
    legend: Html = NO_HTML,
    table: Html = NO_HTML,
    *,
    heading: str = "h4",
) -> Html:
    """`name` is unique on the page."""
    return el(
        "figure",
        el("figcaption", el(heading, title, id=f"{name}-title"), el("p", note, class_="note") if note else None),
        legend,
        _scroll(picture, f"{title}: picture"),
        el("details", el("summary", "The same as a table"), table, class_="data") if table.text else None,
        class_="chart",
        aria_labelledby=f"{name}-title",
        id=name,
    )


def _scroll(inside: Html, label: str) -> Html:
    """A box for content that may be wider than the window. The keyboard scrolls it too."""
    return el("div", inside, class_="scroll", tabindex="0", role="region", aria_label=label)


def legend(entries: Iterable[tuple[str, str]]) -> Html:
    """Entries are (class of the swatch, words)."""
    return el(
        "ul",
        [
            el(
                "li",
                el(
                    "svg",
                    el("rect", x=1, y=1, width=12, height=12, rx=2, class_=kind),
                    viewBox="0 0 14 14",
                    class_="swatch",
                    aria_hidden="true",
                ),
                words,
            )
            for kind, words in entries
        ],
        class_="legend",
    )


def table(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[Child]], left_out: int = 0, words: str = ""
) -> Html:
    """The first column names the row. Columns whose head ends in `#` are numbers. Rows over the limit are only
    counted."""
    if not rows:
        return empty(f"{caption}: none.")
    shown = rows[:_MOST_ROWS]
    left_out += len(rows) - len(shown)
    kinds = ["number" if name.endswith("#") else None for name in head]
    names = [name.removesuffix("#").strip() for name in head]
    body = [
        el(
            "tr",
            [
                el("th", _breakable(cell), scope="row") if at == 0 else el("td", _breakable(cell), class_=kinds[at])
                for at, cell in enumerate(row)
            ],
        )
        for row in shown
    ]
    inside = el(
        "table",
        el("caption", caption),
        el(
            "thead",
            el("tr", [el("th", name, scope="col", class_=kind) for name, kind in zip(names, kinds, strict=True)]),
        ),
        el("tbody", body),
        class_="wide" if len(head) >= _WIDE else None,
    )
    return el("div", _scroll(inside, f"{caption}: table"), more(left_out, words or "rows"))


def _breakable(cell: Child) -> Child:
    """Long names and paths may break after the characters that join their parts."""
    if not isinstance(cell, str) or max(map(len, cell.split()), default=0) <= _LONGEST_WORD:
        return cell
    parts = re.split(r"(?<=[/_.,:-])", cell)
    return [part if at == 0 else [el("wbr"), part] for at, part in enumerate(parts)]


def more(count: int, words: str) -> Html:
    return el("p", f"and {count:,} more {words}", class_="more") if count > 0 else NO_HTML


def empty(words: str) -> Html:
    """A sentence in place of a picture that would be empty."""
    return el("p", words, class_="empty")


def tiles(entries: Iterable[tuple[str, str, str]], links: Mapping[str, str] | None = None) -> Html:
    """Facts are (name, value, remark); `links` maps a fact's name to a place on the page."""
    places = links or {}
    return el(
        "dl",
        [
            el(
                "div",
                el("dt", _linked(name, places.get(name))),
                el("dd", value, el("small", remark) if remark else None),
            )
            for name, value, remark in entries
        ],
        class_="tiles",
    )


def _linked(words: str, place: str | None) -> Child:
    return words if place is None else el("a", words, href=f"#{place}")


def tip(*lines: str) -> Html:
    """The tooltip of a mark."""
    return el("title", "; ".join(line for line in lines if line))
