"""Draws the latency of APIs on a log scale: from the median to the worst minute's p99, and the slowest call."""

import math
from collections.abc import Callable, Sequence

from kafkascope.formatting import count
from kafkascope.markup import Html, coordinate, el
from kafkascope.report.charts.axes import WIDTH, svg
from kafkascope.report.charts.figure import empty, figure, legend, tip
from kafkascope.report.summaries.apis import ApiLatency
from kafkascope.report.words import lasting, shorten

_Place = Callable[[int], float]

_MOST = 15
_LEFT, _RIGHT = 190, 90
_ROW, _TOP, _BOTTOM = 20, 6, 36
# The threshold of the rule api_slow.
_LATE_US = 1_000_000


def latency_figure(latency: Sequence[ApiLatency], table: Html) -> Html:
    title = "Latency by API"
    shown = [api for api in latency if not api.long_poll and api.max_us][:_MOST]
    if not shown:
        return el("section", el("h3", title), empty("No call with a response was recorded."), class_="chart")
    low = min(api.p50_us or api.max_us or 1 for api in shown)
    high = max(api.max_us or 1 for api in shown)
    first, last = math.floor(math.log10(max(1, low))), math.ceil(math.log10(max(10, high)))

    def x(microseconds: int) -> float:
        share = (math.log10(max(1, microseconds)) - first) / max(1, last - first)
        return _LEFT + (WIDTH - _RIGHT - _LEFT) * min(1.0, max(0.0, share))

    bottom = float(_TOP + _ROW * len(shown))
    parts = []
    for power in range(first, last + 1):
        at = x(10**power)
        parts.append(el("path", d=f"M{coordinate(at)} {_TOP}V{coordinate(bottom)}", class_="grid"))
        parts.append(el("text", lasting(10**power), x=at, y=bottom + 15, class_="tick", text_anchor="middle"))
    unit = "time to the response, log scale"
    parts.append(el("text", unit, x=WIDTH - _RIGHT, y=bottom + 30, class_="unit", text_anchor="end"))
    for at, api in enumerate(shown):
        parts += _row(api, _TOP + _ROW * at + _ROW / 2, x)
    return figure(
        "latency-picture",
        title,
        f"The {len(shown)} APIs with the most calls; long polls, which wait by design, are below.",
        svg(bottom + _BOTTOM, f"Latency: {_summary(shown)}", *parts),
        legend(
            (
                ("q-range", "p50 to p99"),
                ("q-p50", "p50, typical"),
                ("q-max", "slowest call"),
                ("q-late", f"slowest call, {lasting(_LATE_US)} or longer"),
            )
        ),
        table,
        heading="h3",
    )


def _row(api: ApiLatency, y: float, x: _Place) -> list[Html]:
    low = api.p50_us if api.p50_us is not None else api.max_us or 1
    high = api.p99_us if api.p99_us is not None else low
    slowest = x(api.max_us or 1)
    tooltip = tip(
        api.api,
        count(api.calls, "call"),
        f"p50 {lasting(api.p50_us)}, worst minute p95 {lasting(api.p95_us)} and p99 {lasting(api.p99_us)}",
        f"slowest {lasting(api.max_us)}",
    )
    diamond = f"M{coordinate(slowest)} {coordinate(y - 5)}l5 5l-5 5l-5 -5z"
    return [
        el("text", shorten(api.api, 26), x=0, y=y + 4, class_="name"),
        el(
            "g",
            tooltip,
            el("rect", x=x(low), y=y - 3, width=max(1.0, x(high) - x(low)), height=6, class_="q-range"),
            el("circle", cx=x(low), cy=y, r=4.5, class_="q-p50"),
            el("path", d=diamond, class_="q-late" if (api.max_us or 0) >= _LATE_US else "q-max"),
            class_="mark",
        ),
        el("text", count(api.calls, "call"), x=WIDTH - _RIGHT + 10, y=y + 4, class_="name"),
    ]


def _summary(shown: Sequence[ApiLatency]) -> str:
    slowest = max(shown, key=lambda api: api.max_us or 0)
    return f"the slowest call was {slowest.api} with {lasting(slowest.max_us)}."
