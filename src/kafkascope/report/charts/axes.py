"""Scales values and times to picture coordinates and draws axes with round ticks."""

import math
from dataclasses import dataclass

from kafkascope.markup import Html, coordinate, el
from kafkascope.report.summaries.buckets import DAY_US, step_for
from kafkascope.report.words import clock, day
from kafkascope.times import moment_of

# All pictures have this width in their own units, so that they line up.
WIDTH = 960
BREAK = 56  # the width of a break of the time axis
_TICK_TEXT = 15
_TICKS = 8  # of a whole axis
_LETTER = 6.8  # the widest letter of a tick


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Times to coordinates. Stretches in `breaks`, in order and apart from each other, are drawn BREAK wide however
    long they are."""

    first: int
    last: int
    left: float
    right: float = WIDTH - 12
    breaks: tuple[tuple[int, int], ...] = ()

    def x(self, at: int) -> float:
        """A time outside the interval is at the nearest edge."""
        at = min(max(at, self.first), self.last)
        gone, across = 0, 0.0
        for since, until in self.breaks:
            if at > since:
                part = min(at, until) - since
                gone += part
                across += BREAK * part / (until - since)
        left_out = sum(until - since for since, until in self.breaks)
        width = self.right - self.left - BREAK * len(self.breaks)
        return self.left + across + width * (at - self.first - gone) / max(1, self.last - self.first - left_out)

    def stretches(self) -> list[tuple[int, int]]:
        """What is between the breaks."""
        edges = [self.first, *(at for pair in self.breaks for at in pair), self.last]
        return list(zip(edges[::2], edges[1::2], strict=True))


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
    for at, label in _axis_ticks(scale):
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


def _axis_ticks(scale: TimeScale) -> list[tuple[int, str]]:
    """Round times of each stretch, as many as it has room for; a stretch too short for one has its beginning."""
    if not scale.breaks:
        return time_ticks(scale.first, scale.last)
    ticks: list[tuple[int, str]] = []
    before = day(scale.first)
    for first, last in scale.stretches():
        most = int(_TICKS * (scale.x(last) - scale.x(first)) / (scale.right - scale.left))
        round_times = time_ticks(first, last, most) if most else []
        (at, label), *others = round_times or [(first, clock(first, 1_000_000))]
        # The first time of another day has its day.
        ticks += [(at, label if day(at) == before else f"{day(at).rpartition(' ')[0]} {label}"), *others]
        before = day(last)
    return ticks


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
