"""Draws stacked bars of delivery outcomes over time. Outcomes other than accepted get a panel with its own scale
if they would be too small to see."""

from collections.abc import Sequence

from kafkascope.markup import Html, coordinate, el
from kafkascope.report.charts.axes import WIDTH, TimeScale, ValueScale, svg, time_axis, value_axis, value_ticks
from kafkascope.report.charts.figure import empty, figure, legend, table, tip
from kafkascope.report.charts.outcome_words import OUTCOME_WORDS, fill, tally
from kafkascope.report.summaries.share import ShareGroupSummary
from kafkascope.report.summaries.share_pictures import OUTCOMES
from kafkascope.report.words import clock, interval, lasting, number

_LEFT = 58
# Below this share of the highest bar, the other outcomes are too small to see.
_HIDDEN = 0.15
_PANEL, _GAP, _TOP, _BOTTOM = 150, 44, 26, 36


def outcomes_figure(group: ShareGroupSummary, name: str) -> Html:
    title = "How deliveries ended, over time"
    if not group.ended:
        return el("section", el("h4", title), empty("No delivery was recorded."), class_="chart")
    buckets = group.buckets
    step = lasting(buckets.step_us)
    order = [outcome for outcome in OUTCOMES if outcome in group.ended]
    not_accepted = [outcome for outcome in order if outcome != "accepted"]
    panels: list[tuple[str, Sequence[str]]] = [(f"records in {step}", order)]
    highest = _highest(group, order)
    if not_accepted and "accepted" in order and _highest(group, not_accepted) < _HIDDEN * highest:
        panels.append((f"the same without accepted: records in {step}", not_accepted))
    scale = TimeScale(buckets.first_at, buckets.last_at, _LEFT)
    parts: list[Html] = []
    top = float(_TOP)
    for unit, outcomes in panels:
        parts += _panel(group, outcomes, scale, top, unit)
        top += _PANEL + _GAP
    bottom = top - _GAP
    parts = [*time_axis(scale, _TOP, bottom), *parts, *_hits(group, order, scale, bottom)]
    return figure(
        f"{name}-outcomes",
        title,
        f"Records by outcome in steps of {step}, each at the time its delivery ended; records still held are at the"
        " time they were acquired.",
        svg(bottom + _BOTTOM, f"Stacked bars of {number(group.acquired)} deliveries: {tally(group.outcomes)}.", *parts),
        legend(
            (fill(outcome), f"{OUTCOME_WORDS[outcome]} {number(group.outcomes.get(outcome, 0))}") for outcome in order
        ),
        _table(group, order),
    )


def _highest(group: ShareGroupSummary, outcomes: Sequence[str]) -> int:
    return max((sum(step) for step in zip(*(group.ended[name] for name in outcomes), strict=True)), default=0)


def _panel(group: ShareGroupSummary, outcomes: Sequence[str], scale: TimeScale, top: float, unit: str) -> list[Html]:
    ticks = value_ticks(_highest(group, outcomes))
    values = ValueScale(ticks[-1], top, top + _PANEL)
    parts = value_axis(values, ticks, _LEFT, WIDTH - 12, unit)
    below = [0] * group.buckets.count
    for outcome in outcomes:
        bars = []
        for index, count in enumerate(group.ended[outcome]):
            if count:
                x, width = _bar(group, scale, index)
                low, high = values.y(below[index]), values.y(below[index] + count)
                # A value above 0 is always visible.
                tall = max(1.0, low - high)
                bars.append(
                    f"M{coordinate(x)} {coordinate(low)}h{coordinate(width)}v{coordinate(-tall)}h-{coordinate(width)}z"
                )
                below[index] += count
        parts.append(el("path", d="".join(bars), class_=f"bar {fill(outcome)}"))
    return parts


def _bar(group: ShareGroupSummary, scale: TimeScale, index: int) -> tuple[float, float]:
    left, right = scale.x(group.buckets.start(index)), scale.x(group.buckets.start(index + 1))
    gap = 1.0 if right - left >= 4 else 0.0
    return left + gap / 2, right - left - gap


def _hits(group: ShareGroupSummary, order: Sequence[str], scale: TimeScale, bottom: float) -> list[Html]:
    """One tooltip area per step."""
    parts = []
    for index in range(group.buckets.count):
        records = {name: group.ended[name][index] for name in order if group.ended[name][index]}
        if records:
            left, right = scale.x(group.buckets.start(index)), scale.x(group.buckets.start(index + 1))
            tooltip = tip(_step(group, index), tally(records))
            parts.append(el("rect", tooltip, x=left, y=_TOP, width=right - left, height=bottom - _TOP, class_="hit"))
    return parts


def _step(group: ShareGroupSummary, index: int) -> str:
    unit = group.buckets.step_us
    return f"{clock(group.buckets.start(index), unit)} – {clock(group.buckets.start(index + 1), unit)}"


def _table(group: ShareGroupSummary, order: Sequence[str]) -> Html:
    rows = [
        (
            interval(group.buckets.start(index), group.buckets.start(index + 1), group.buckets.step_us),
            *(number(group.ended[name][index]) for name in order),
        )
        for index in range(group.buckets.count)
        if any(group.ended[name][index] for name in order)
    ]
    head = ("time (UTC)", *(f"{OUTCOME_WORDS[name]} #" for name in order))
    return table(f"Records of {group.group_id} by outcome and time", head, rows)
