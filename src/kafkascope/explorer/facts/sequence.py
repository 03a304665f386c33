"""A conversation in, a small sequence diagram as SVG out; what it shows stands in words beside it too."""

from typing import Any

from markupsafe import Markup

# Between two actors, by how many there are: a page is 1,100 wide, and names of APIs stand over the arrows.
COLUMNS = {2: 300, 3: 280, 4: 250, 5: 225}
NARROWEST = 178
MARGIN = 90
TOP = 56
STEP = 50
TIP = 7


def sequence_svg(flow: dict[str, Any], here: str) -> Markup:
    """`flow` has `title`, `actors` and `steps` (`sender`, `receiver`, `api`, `remark`); steps of `here` stand out."""
    actors = flow["actors"]
    column = COLUMNS.get(len(actors), NARROWEST)
    at = {name: MARGIN + column * number for number, name in enumerate(actors)}
    width = 2 * MARGIN + column * (len(actors) - 1)
    height = TOP + STEP * len(flow["steps"]) + 16
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
        parts.append(_step(step, at, TOP + STEP * number + 24, step["api"] == here))
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
        start, y, tip - way * TIP, tip, y, -way * TIP,
        middle, y - 6, step["api"], middle, y + 15, step["remark"],
    )  # fmt: skip
