"""Draws a conversation as a small SVG sequence diagram. The page shows the same in words."""

from typing import Any

from kafkascope.markup import Html, el

# Distance of two actors, by the number of actors: a page is 1,100 wide, and names of APIs are above the arrows.
_COLUMNS = {2: 300, 3: 280, 4: 250, 5: 225}
_NARROWEST = 178
_MARGIN = 90
_TOP = 56
_STEP = 50
_TIP = 7


def sequence_svg(flow: dict[str, Any], here: str) -> Html:
    """`flow` has `title`, `actors` and `steps` (`sender`, `receiver`, `api`, `remark`). Steps of `here` are
    highlighted."""
    actors = flow["actors"]
    column = _COLUMNS.get(len(actors), _NARROWEST)
    at = {name: _MARGIN + column * number for number, name in enumerate(actors)}
    width = 2 * _MARGIN + column * (len(actors) - 1)
    height = _TOP + _STEP * len(flow["steps"]) + 16
    label = f"{flow['title']}: {len(flow['steps'])} requests between {', '.join(actors)}; in words below"
    return el(
        "svg",
        [_actor(name, x, height) for name, x in at.items()],
        [_step(step, at, _TOP + _STEP * number + 24, step["api"] == here) for number, step in enumerate(flow["steps"])],
        class_="flow",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        aria_label=label,
    )


def _actor(name: str, x: int, height: int) -> list[Html]:
    return [
        el("path", class_="life", d=f"M{x} 36V{height}"),
        el("rect", class_="actor", x=x - 84, y=6, width=168, height=30, rx=6),
        el("text", name, x=x, y=26, text_anchor="middle"),
    ]


def _step(step: dict[str, Any], at: dict[str, int], y: int, here: bool) -> Html:
    start, end = at[step["sender"]], at[step["receiver"]]
    way = 1 if end > start else -1
    middle, tip = (start + end) // 2, end - way
    return el(
        "g",
        el("path", class_="arrow", d=f"M{start} {y}H{tip - way * _TIP}"),
        el("path", class_="tip", d=f"M{tip} {y}l{-way * _TIP} -5v10z"),
        el("text", step["api"], x=middle, y=y - 6, text_anchor="middle"),
        el("text", step["remark"], class_="soft", x=middle, y=y + 15, text_anchor="middle"),
        class_="here" if here else None,
    )
