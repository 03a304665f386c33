"""Draws a conversation as a small SVG sequence diagram. The page shows the same in words."""

from typing import Any

from markupsafe import Markup

# Between two actors, by how many there are: a page is 1,100 wide, and names of APIs stand over the arrows.
_COLUMNS = {2: 300, 3: 280, 4: 250, 5: 225}
_NARROWEST = 178
_MARGIN = 90
_TOP = 56
_STEP = 50
_TIP = 7


def sequence_svg(flow: dict[str, Any], here: str) -> Markup:
    """`flow` has `title`, `actors` and `steps` (`sender`, `receiver`, `api`, `remark`); steps of `here` stand out."""
    actors = flow["actors"]
    column = _COLUMNS.get(len(actors), _NARROWEST)
    at = {name: _MARGIN + column * number for number, name in enumerate(actors)}
    width = 2 * _MARGIN + column * (len(actors) - 1)
    height = _TOP + _STEP * len(flow["steps"]) + 16
    label = f"{flow['title']}: {len(flow['steps'])} requests between {', '.join(actors)}; in words below"
    parts = [
        Markup('<svg class="flow" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">').format(
            width, height, width, height, label
        )
    ]
    for name, x in at.items():
        parts.append(Markup('<path class="life" d="M{} {}V{}"/>').format(x, 36, height))
        parts.append(
            Markup('<rect class="actor" x="{}" y="6" width="168" height="30" rx="6"/>').format(x - 84)
            + Markup('<text x="{}" y="26" text-anchor="middle">{}</text>').format(x, name)
        )
    for number, step in enumerate(flow["steps"]):
        parts.append(_step(step, at, _TOP + _STEP * number + 24, step["api"] == here))
    return Markup("").join([*parts, Markup("</svg>")])


def _step(step: dict[str, Any], at: dict[str, int], y: int, here: bool) -> Markup:
    start, end = at[step["sender"]], at[step["receiver"]]
    way = 1 if end > start else -1
    middle = (start + end) // 2
    tip = end - way
    return Markup(
        '<g{}><path class="arrow" d="M{} {}H{}"/><path class="tip" d="M{} {}l{} -5v10z"/>'
        '<text x="{}" y="{}" text-anchor="middle">{}</text>'
        '<text class="soft" x="{}" y="{}" text-anchor="middle">{}</text></g>'
    ).format(
        Markup(' class="here"') if here else "",
        start, y, tip - way * _TIP, tip, y, -way * _TIP,
        middle, y - 6, step["api"], middle, y + 15, step["remark"],
    )  # fmt: skip
