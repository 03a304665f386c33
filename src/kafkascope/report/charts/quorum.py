"""Draws the history of a metadata quorum: leaders, events and the lag of each replica on one time axis."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from kafkascope.health.findings.rules.quorum import ELECTION_CAUSES
from kafkascope.markup import Html, coordinate, el, join
from kafkascope.report.charts.axes import WIDTH, TimeScale, ValueScale, svg, time_axis, value_axis, value_ticks
from kafkascope.report.charts.figure import empty, figure, legend, more, table, tip
from kafkascope.report.summaries.quorum import Event, QuorumSummary, ReplicaLag
from kafkascope.report.words import clock, lasting, number, when

_LEFT, _RIGHT = 58, 84
_COLOURS = 8
# A voter that hasn't fetched for controller.quorum.fetch.timeout.ms starts an election. A broker that has been silent
# for broker.session.timeout.ms is fenced.
_VOTERS_LIMIT = (2.0, "fetch timeout, 2 s by default")
_OBSERVERS_LIMIT = (9.0, "broker session timeout, 9 s by default")
_OBSERVER = "observer"
_VOTERS_UNIT, _OBSERVERS_UNIT, _RECORDS_UNIT = (
    "lag, seconds",
    "lag of observers, seconds",
    "lag, records",
)
_FLAGS, _BAND, _PANEL, _GAP, _BOTTOM = 22, 26, 120, 40, 36
_LETTER = 6.6
# Number of steps without an observation that breaks a line.
_BREAK = 8
_MOST_LABELS, _LINE = 6, 13
EVENT_WORDS = {
    "elected": "elected",
    "observed": "led before",
    "resigned": "resigned",
    "late_resignation": "late resignation",
    "election_failed": "election failed",
    "leaderless": "no leader",
    "voters_changed": "voters changed",
}


def quorum_figure(quorum: QuorumSummary, name: str) -> Html:
    """`name` is unique on the page."""
    title = "Who led, and how far the others lagged"
    if not quorum.bands and not quorum.replicas:
        why = "No leader and no replica was seen in this time, only the events below."
        return el("section", el("h4", title), empty(why), class_="chart")
    if quorum.first_at == quorum.last_at:
        why = f"The quorum was seen at one moment only, {when(quorum.first_at)} UTC: {_summary(quorum)}"
        return el("section", el("h4", title), empty(why), _replica_table(quorum), class_="chart")
    scale = TimeScale(quorum.first_at, max(quorum.last_at, quorum.first_at + 1_000), _LEFT, WIDTH - _RIGHT)
    colours = {
        replica.replica_id: f"c{at}" if at < _COLOURS else "c-other" for at, replica in enumerate(quorum.replicas)
    }
    bands = _bands(quorum, scale, colours)
    top = float(_FLAGS + _BAND + _GAP)
    lines: list[Html] = []
    for panel in _panels(quorum):
        lines += _lines(quorum, panel, scale, top, colours)
        top += _PANEL + _GAP
    bottom = top - _GAP
    flags = _flags(quorum.events, scale, bottom)
    parts = [*time_axis(scale, _FLAGS, bottom), *flags, *bands, *lines]
    return figure(
        name,
        title,
        "Top: the leader by epoch, red where there was none. Below: the lag of each replica, in time since it was last"
        f" caught up and in records of the metadata log, the worst of each {lasting(quorum.buckets.step_us)}."
        " A healthy follower waits in its fetch for up to half a second.",
        svg(bottom + _BOTTOM, f"Leaders and lag: {_summary(quorum)}", *parts),
        legend([(colours[replica.replica_id], f"node {replica.replica_id}") for replica in quorum.replicas]),
        join(
            [
                _band_table(quorum),
                _replica_table(quorum),
                _lag_table(quorum),
                more(quorum.replicas_left_out, "replicas with less lag"),
            ]
        ),
    )


class _Panel(NamedTuple):
    """`limit` is a value and its name; `values` has a row per replica with a value per step."""

    unit: str
    values: Sequence[tuple[ReplicaLag, Sequence[float | None]]]
    limit: tuple[float, str] | None


def _panels(quorum: QuorumSummary) -> list[_Panel]:
    """Voters and observers have different timeouts, so each gets a panel."""
    voters = [replica for replica in quorum.replicas if replica.role != _OBSERVER]
    observers = [replica for replica in quorum.replicas if replica.role == _OBSERVER]
    panels = []
    if voters or not observers:
        unit = "lag of voters, seconds" if observers else _VOTERS_UNIT
        panels.append(_Panel(unit, [(replica, _seconds(replica)) for replica in voters], _VOTERS_LIMIT))
    if observers:
        panels.append(
            _Panel(_OBSERVERS_UNIT, [(replica, _seconds(replica)) for replica in observers], _OBSERVERS_LIMIT)
        )
    return [*panels, _Panel(_RECORDS_UNIT, [(replica, replica.lag) for replica in quorum.replicas], None)]


def _seconds(replica: ReplicaLag) -> list[float | None]:
    return [None if value is None else value / 1000 for value in replica.behind_ms]


def most_behind(quorum: QuorumSummary) -> ReplicaLag | None:
    """The voter that was furthest behind. Observers don't vote, so one is named only if no voter lagged."""
    behind = [replica for replica in quorum.replicas if replica.worst_behind_ms]
    return max(behind, key=lambda replica: (replica.role != _OBSERVER, replica.worst_behind_ms or 0), default=None)


def replica_name(replica: ReplicaLag) -> str:
    """`node 2`, `observer node 4`."""
    return f"{_OBSERVER} node {replica.replica_id}" if replica.role == _OBSERVER else f"node {replica.replica_id}"


def _bands(quorum: QuorumSummary, scale: TimeScale, colours: dict[int, str]) -> list[Html]:
    parts = [el("text", "leader", x=0, y=_FLAGS + 17, class_="name")]
    for band in quorum.bands:
        left, right = scale.x(band.from_at), scale.x(band.to_at)
        if band.without_ms:
            parts += _nobody(scale.x(band.from_at - 1000 * band.without_ms), left, band.without_ms)
        colour = colours.get(band.leader_id, "c-other")
        tooltip = tip(
            f"node {band.leader_id} leads in epoch {band.epoch}",
            f"{clock(band.from_at)} – {clock(band.to_at)} ({lasting(band.to_at - band.from_at)})",
        )
        width = max(2.0, right - left)
        parts.append(el("rect", tooltip, x=left, y=_FLAGS, width=width, height=_BAND, class_=f"{colour} mark edge"))
        names = (f"node {band.leader_id}, epoch {band.epoch}", f"node {band.leader_id}", str(band.leader_id))
        parts += _label(names, left, width, f"on-{colour}")
    if quorum.leaderless_ms:
        right = scale.x(quorum.last_at)
        parts += _nobody(scale.x(quorum.last_at - 1000 * quorum.leaderless_ms), right, quorum.leaderless_ms)
    return parts


def _nobody(left: float, right: float, lasted_ms: int) -> list[Html]:
    length = lasting(1000 * lasted_ms)
    width = max(2.0, right - left)
    tooltip = tip(f"no leader for {length}")
    bar = el("rect", tooltip, x=left, y=_FLAGS, width=width, height=_BAND, class_="unheld mark")
    return [bar, *_label((f"no leader {length}", length), left, width, "on-unheld")]


def _label(words: Sequence[str], left: float, width: float, kind: str) -> list[Html]:
    """The first label that fits."""
    fitting = next((label for label in words if width > len(label) * _LETTER + 8), None)
    return [] if fitting is None else [el("text", fitting, x=left + 5, y=_FLAGS + 17, class_=kind)]


def _flags(events: Sequence[Event], scale: TimeScale, bottom: float) -> list[Html]:
    """Every event gets a line, and a label if it fits."""
    parts, free = [], 0.0
    for event in events:
        x = scale.x(event.at)
        words = EVENT_WORDS.get(event.kind, event.kind.replace("_", " "))
        words = words if event.node_id is None else f"node {event.node_id} {words}"
        tooltip = tip(words, when(event.at), *event_words(event))
        line = f"M{coordinate(x)} {_FLAGS - 4}V{coordinate(bottom)}"
        parts.append(
            el("g", tooltip, el("path", d=line, class_="event"), el("path", d=line, class_="reach"), class_="mark")
        )
        wide = len(words) * _LETTER
        anchor, start = ("end", x - wide) if x + wide > WIDTH else ("start", x)
        if start >= free:
            parts.append(el("text", words, x=x, y=_FLAGS - 8, class_="flag", text_anchor=anchor))
            free = start + wide + 8
    return parts


def event_words(event: Event) -> list[str]:
    words = [f"epoch {event.epoch}"] if event.epoch is not None else []
    known = event.cause is not None and event.cause != "unknown"
    words += [f"cause: {ELECTION_CAUSES.get(event.cause, event.cause)}"] if event.cause and known else []
    words += [f"no leader for {lasting(1000 * event.duration_ms)}"] if event.duration_ms is not None else []
    words += [f"voting took {lasting(1000 * event.voting_ms)}"] if event.voting_ms is not None else []
    return words + ([event.detail] if event.detail else [])


def _lines(
    quorum: QuorumSummary,
    panel: _Panel,
    scale: TimeScale,
    top: float,
    colours: dict[int, str],
) -> list[Html]:
    whole = panel.limit is None
    largest = max((value for _, row in panel.values for value in row if value is not None), default=0)
    ticks = value_ticks(largest, 3, whole)
    heights = ValueScale(ticks[-1], top, top + _PANEL)
    parts = value_axis(heights, ticks, scale.left, scale.right, panel.unit)
    if panel.limit is not None and ticks[-1] >= panel.limit[0]:
        y = heights.y(panel.limit[0])
        parts.append(
            el("path", d=f"M{coordinate(scale.left)} {coordinate(y)}H{coordinate(scale.right)}", class_="limit")
        )
        parts.append(
            el(
                "text",
                panel.limit[1],
                x=scale.right - 4,
                y=y - 4,
                class_="limit-name",
                text_anchor="end",
            )
        )
    ends: list[tuple[float, float, ReplicaLag]] = []
    for replica, row in panel.values:
        places = [
            (scale.x(quorum.buckets.start(at) + quorum.buckets.step_us // 2), heights.y(value), at, value)
            for at, value in enumerate(row)
            if value is not None
        ]
        if not places:
            continue
        parts.append(el("path", d=_path(places), class_=f"line l-{colours[replica.replica_id]}"))
        alone = _alone([at for _, _, at, _ in places])
        for x, y, at, value in places:
            if value or at in alone:
                behind = f"lag {number(value)} records" if whole else f"lag {value:,g} seconds"
                tooltip = tip(f"node {replica.replica_id}", clock(quorum.buckets.start(at)), behind)
                parts.append(el("circle", tooltip, cx=x, cy=y, r=3, class_=f"{colours[replica.replica_id]} mark dot"))
        ends.append((places[-1][1], places[-1][0], replica))
    return parts + _end_labels(ends, top)


def _path(places: Sequence[tuple[float, float, int, float]]) -> str:
    """A line breaks where observations are missing, but not for one or two steps, since a leader is polled once a
    second."""
    text, before = [], None
    for x, y, at, _ in places:
        text.append(f"{'M' if before is None or at - before > _BREAK else 'L'}{coordinate(x)} {coordinate(y)}")
        before = at
    return "".join(text)


def _alone(steps: list[int]) -> set[int]:
    """Steps that no line reaches."""
    far = [True, *(later - earlier > _BREAK for earlier, later in pairwise(steps)), True]
    return {step for step, before, after in zip(steps, far, far[1:], strict=False) if before and after}


def _end_labels(ends: list[tuple[float, float, ReplicaLag]], top: float) -> list[Html]:
    """Labels at the ends of lines, moved up where two would overlap. Of many lines only the highest are labelled."""
    parts: list[Html] = []
    taken: list[tuple[float, float]] = []
    worst = sorted(ends, key=lambda end: (end[0], -(end[2].worst_behind_ms or 0)))[:_MOST_LABELS]
    room = top + _LINE * len(worst)
    for y, x, replica in sorted(worst, key=lambda end: (-end[0], end[2].replica_id)):
        at = max(y + 4, room)
        room -= _LINE
        while any(abs(x - other) < 60 and abs(at - height) < _LINE for other, height in taken):
            at -= 1
        taken.append((x, at))
        parts.append(el("text", f"node {replica.replica_id}", x=x + 8, y=at, class_="name halo"))
    return parts


def _summary(quorum: QuorumSummary) -> str:
    led = ", ".join(f"node {band.leader_id} in epoch {band.epoch}" for band in quorum.bands[:6])
    behind = most_behind(quorum)
    worst = ""
    if behind is not None and behind.worst_behind_ms:
        worst = f" The largest lag was that of {replica_name(behind)}, {lasting(1000 * behind.worst_behind_ms)}."
    return f"{led or 'no leader was seen'}.{worst}"


def _band_table(quorum: QuorumSummary) -> Html:
    rows = [
        (
            f"epoch {band.epoch}",
            f"node {band.leader_id}",
            when(band.from_at),
            when(band.to_at),
            lasting(band.to_at - band.from_at),
            lasting(None if band.without_ms is None else 1000 * band.without_ms),
        )
        for band in quorum.bands
    ]
    head = ("epoch", "leader", "from (UTC)", "to (UTC)", "length #", "no leader before #")
    return table("Leaders", head, rows)


def _replica_table(quorum: QuorumSummary) -> Html:
    rows = [
        (
            f"node {replica.replica_id}",
            replica.role or "unknown",
            number(replica.worst_lag),
            lasting(None if replica.worst_behind_ms is None else 1000 * replica.worst_behind_ms),
            lasting(None if replica.worst_fetch_age_ms is None else 1000 * replica.worst_fetch_age_ms),
            number(replica.last_lag),
            when(replica.seen_at),
        )
        for replica in quorum.replicas
    ]
    head = (
        "replica",
        "role, last",
        "largest lag, records #",
        "largest lag, time #",
        "longest without fetch #",
        "last lag, records #",
        "last seen (UTC)",
    )
    return table("Replicas", head, rows)


def _lag_table(quorum: QuorumSummary) -> Html:
    rows = []
    for at in range(quorum.buckets.count):
        if any(replica.lag[at] or replica.behind_ms[at] for replica in quorum.replicas):
            cells = [_both(replica.lag[at], replica.behind_ms[at]) for replica in quorum.replicas]
            rows.append((when(quorum.buckets.start(at), quorum.buckets.step_us), *cells))
    head = ("time (UTC)", *(f"node {replica.replica_id} #" for replica in quorum.replicas))
    return table("Lag in records and in time; steps without lag are left out", head, rows)


def _both(lag: int | None, behind_ms: int | None) -> str:
    if lag is None and behind_ms is None:
        return "–"
    return f"{number(lag)}, {lasting(None if behind_ms is None else 1000 * behind_ms)}"
