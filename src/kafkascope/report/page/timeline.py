"""Renders the timeline section."""

from kafkascope.markup import Html, el
from kafkascope.report.build import Report
from kafkascope.report.charts.figure import empty
from kafkascope.report.charts.timeline import pauses, reach, timeline_figure, timeline_of


def timeline_section(report: Report) -> Html:
    lanes = timeline_of(report.unread, report.findings.incidents, report.quorums, report.share, report.streams)
    first, last = reach(lanes, report.first_at, report.last_at)
    why = "Everything was recorded at one moment." if lanes else "Nothing with a time was recorded."
    return el(
        "section",
        el("h2", "Timeline", id="timeline"),
        timeline_figure(lanes, first, last, pauses(report.unread, first, last)) if first < last else empty(why),
        aria_labelledby="timeline",
    )
