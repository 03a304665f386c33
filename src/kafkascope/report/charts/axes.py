"""Scales values and times to picture coordinates and draws axes with round ticks."""

import math
from dataclasses import dataclass

from kafkascope.markup import Html, coordinate, el
from kafkascope.report.summaries.buckets import DAY_US, step_for
from kafkascope.report.words import clock, day
from kafkascope.times import moment_of

# All pictures have this width in their own units, so that they line up.
WIDTH = 960
_TICK_TEXT = 15
_LETTER = 6.8  # the widest letter of a tick


@dataclass(frozen=True, slots=True)
class TimeScale:
    first: int
    last: int
    left: float
    right: float = WIDTH - 12

    def x(self, at: int) -> float:
        """A time outside the interval is at the nearest edge."""
        share = (at - self.first) / max(1, self.last - self.first)
        return self.left + (self.right - self.left) * min(1.0, max(0.0, share))


@dataclass(frozen=True, slots=True)
class ValueScale:
    """0 is at `bottom`, `most` at `top`."""

    most: float
    top: float
    bottom: float

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - self.top) * min(1.0, value / self.most if self.most else 0.0)


def time_ticks(first: int, last: int, most: int = 8) -> list[tuple[int, str]]:
    step = step_for(last - first, most + 1)
    start = -(-first // step) * step
    return [(at, _tick(at, step)) for at in range(start, last + 1, step)]


def _tick(at: int, step: int) -> str:
    if at % DAY_US == 0 or step >= DAY_US:
        moment = moment_of(at)
        return "" if moment is None else f"{moment.day} {moment:%b}"
    return clock(at, step)


def value_ticks(largest: float, most: int = 4, whole: bool = True) -> list[float]:
    """From 0 to at least the largest value, in steps of 1, 2 or 5 times a power of ten."""
    if largest <= 0:
        return [0, 1]
    power = 10.0 ** math.floor(math.log10(largest / most))
    step = next(power * times for times in (1, 2, 5, 10) if power * times * most >= largest * (1 - 1e-9))
    if whole:
        step = max(1.0, step)
    return [step * number for number in range(math.ceil(largest / step - 1e-9) + 1)]


def time_axis(scale: TimeScale, top: float, bottom: float) -> list[Html]:
    """Vertical lines with times below them; the day and the zone are shown once."""
    parts = []
    for at, label in time_ticks(scale.first, scale.last):
        x = scale.x(at)
        parts.append(el("path", d=f"M{coordinate(x)} {coordinate(top)}V{coordinate(bottom)}", class_="grid"))
        # A label at the right edge moves left, so that it isn't cut.
        middle = min(x, WIDTH - len(label) * _LETTER / 2)
        parts.append(el("text", label, x=middle, y=bottom + _TICK_TEXT, class_="tick", text_anchor="middle"))
    days = day(scale.first) if day(scale.first) == day(scale.last) else f"{day(scale.first)} – {day(scale.last)}"
    parts.append(
        el("text", f"time, UTC, {days}", x=scale.right, y=bottom + 2 * _TICK_TEXT, class_="unit", text_anchor="end")
    )
    return parts


def short(value: float) -> str:
    """`0.5`, `250,000`, `1.5 G`: short enough for an axis, without powers of ten."""
    for factor, letter in ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M")):
        if value >= factor:
            return f"{value / factor:,g} {letter}"
    return f"{value:,g}"


def value_axis(scale: ValueScale, ticks: list[float], left: float, right: float, unit: str) -> list[Html]:
    parts = []
    for value in ticks:
        y = scale.y(value)
        parts.append(el("path", d=f"M{coordinate(left)} {coordinate(y)}H{coordinate(right)}", class_="grid"))
        parts.append(el("text", short(value), x=left - 6, y=y + 4, class_="tick", text_anchor="end"))
    parts.append(el("text", unit, x=0, y=scale.top - 9, class_="unit"))
    return parts


def svg(height: float, label: str, *parts: object, role: str = "img") -> Html:
    """A picture with a description in words. A picture with links has the role `group`."""
    return el(
        "svg",
        *parts,  # type: ignore[arg-type]
        viewBox=f"0 0 {WIDTH} {coordinate(height)}",
        role=role,
        aria_label=label,
        class_="picture",
    )
