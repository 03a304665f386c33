"""Draws a heat map of redeliveries for a share group: partitions over time, darker for more records."""

from math import ceil

from kafkascope.markup import Html, el, join
from kafkascope.report.charts.axes import WIDTH, TimeScale, svg, time_axis
from kafkascope.report.charts.figure import empty, figure, legend, more, table, tip
from kafkascope.report.summaries.share import ShareGroupSummary
from kafkascope.report.words import clock, lasting, number, share, shorten

_LEFT, _RIGHT = 150, 164
_LETTERS = 21  # letters that fit at the right
_SHADES = 5
_MOST_COLUMNS = 60
_ROW, _TOP, _BOTTOM = 18, 6, 36


def heat_figure(group: ShareGroupSummary, name: str) -> Html:
    title = "Which partitions redelivered records, and when"
    if not group.redelivered:
        return el("section", el("h4", title), empty("No record was redelivered."), class_="chart")
    buckets = group.buckets
    together = ceil(buckets.count / _MOST_COLUMNS)
    rows = [_joined(row, together) for row in group.again]
    limits = shades(max(max(row) for row in rows))
    scale = TimeScale(buckets.first_at, buckets.last_at, _LEFT, WIDTH - _RIGHT)
    bottom = float(_TOP + _ROW * len(rows))
    parts = time_axis(scale, _TOP, bottom)
    for at, (place, row) in enumerate(zip(group.places, rows, strict=True)):
        top = _TOP + _ROW * at
        parts.append(el("text", shorten(place.name, 22), el("title", place.name), x=0, y=top + 13, class_="name"))
        for index, count in enumerate(row):
            if count:
                first, last = (
                    buckets.start(index * together),
                    min(buckets.start((index + 1) * together), buckets.last_at),
                )
                left, right = scale.x(first), scale.x(last)
                tooltip = tip(
                    place.name,
                    f"{clock(first, buckets.step_us)} – {clock(last, buckets.step_us)}",
                    f"{number(count)} redelivered",
                )
                shade = f"h{next(level for level, limit in enumerate(limits, 1) if count <= limit)}"
                width = max(2.0, right - left - 1)
                parts.append(el("rect", tooltip, x=left, y=top + 1, width=width, height=_ROW - 2, class_=shade))
        words = f"{number(place.redelivered)} of {number(place.acquired)}"
        if len(words) > _LETTERS:
            words = f"{share(place.redelivered, place.acquired)}"
        kind = "name loud" if place.redelivered else "name"
        parts.append(el("text", words, x=WIDTH - _RIGHT + 10, y=top + 13, class_=kind))
    step = lasting(buckets.step_us * together)
    return figure(
        f"{name}-again",
        title,
        f"Records acquired with a delivery count above 1, in steps of {step}. At the right: how many of a partition's"
        " deliveries were redeliveries.",
        svg(bottom + _BOTTOM, f"Heat map: {_summary(group)}", *parts),
        legend((f"h{level}", words) for level, words in _ranges(limits)),
        join([_table(group), more(group.places_left_out, "partitions with fewer redeliveries")]),
    )


def _joined(row: list[int], together: int) -> list[int]:
    return [sum(row[at : at + together]) for at in range(0, len(row), together)]


def shades(largest: int) -> list[int]:
    """The largest value of each shade. Few values get a shade each, many are split by equal factors."""
    if largest <= _SHADES:
        return list(range(1, largest + 1))
    return sorted({ceil(largest ** (level / _SHADES)) for level in range(1, _SHADES)} | {largest})


def _ranges(limits: list[int]) -> list[tuple[int, str]]:
    lows = [1, *(limit + 1 for limit in limits)]
    return [
        (level, number(high) if low == high else f"{number(low)} – {number(high)}")
        for level, (low, high) in enumerate(zip(lows, limits, strict=False), 1)
    ]


def _summary(group: ShareGroupSummary) -> str:
    worst = max(group.places, key=lambda place: place.redelivered)
    return (
        f"{number(group.redelivered)} of {number(group.acquired)} deliveries were redeliveries, most of them in "
        f"{worst.name} ({number(worst.redelivered)})."
    )


def _table(group: ShareGroupSummary) -> Html:
    rows = [
        (
            place.name,
            number(place.acquired),
            number(place.redelivered),
            share(place.redelivered, place.acquired),
            number(place.highest_count) if place.highest_count else "unknown",
            number(place.archived),
        )
        for place in sorted(group.places, key=lambda place: -place.redelivered)
    ]
    head = ("partition", "deliveries #", "redelivered #", "share #", "highest delivery count #", "archived #")
    return table(f"Redeliveries of {group.group_id} by partition", head, rows)
