"""Draws one time axis for the whole report: recordings, incidents, elections, members that came and went. Each mark
links to its section."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kafkascope.formatting import count, file_name, span
from kafkascope.markup import Html, coordinate, el
from kafkascope.report.charts.axes import WIDTH, TimeScale, svg, time_axis
from kafkascope.report.charts.figure import figure, legend, table, tip
from kafkascope.report.charts.quorum import EVENT_WORDS, event_words
from kafkascope.report.html.icons import STATE_WORDS
from kafkascope.report.incident_words import incident_name
from kafkascope.report.summaries.incidents import Incidents
from kafkascope.report.summaries.quorum import Quorums, QuorumSummary
from kafkascope.report.summaries.share import ShareGroups
from kafkascope.report.summaries.streams import StreamsGroups, StreamsGroupSummary
from kafkascope.report.summaries.unread import Unread
from kafkascope.report.words import clock, lasting, shorten, when

_LEFT, _TOP, _BOTTOM, _BAR, _GAP, _BETWEEN = 150, 8, 36, 14, 3, 10
_LETTER = 7.4  # the widest letter of a bold label
_LEAST_LETTERS = 24  # letters of a label that is cut
# The sections below show the rest.
_MOST_RECORDINGS, _MOST_INCIDENTS, _MOST_MEMBERS, _MOST_GROUPS = 20, 20, 8, 4
# Bars closer than this get rows of their own.
_APART = 6.0
_QUORUM = "quorum"
# A pause of the recordings is drawn as a break if it's longer than this share of all that was recorded.
_BREAK_SHARE = 0.5
_MOST_BREAKS = 6
_UNIT = WIDTH - 250  # where the words about the axis begin
_EVENTS = frozenset({"elected", "resigned", "election_failed", "leaderless", "voters_changed"})


@dataclass(frozen=True, slots=True)
class Mark:
    """A bar, or a flag for an event. `words` are drawn if they fit; `gone` ends it with a cross."""

    from_at: int
    to_at: int
    kind: str
    words: str
    tips: tuple[str, ...]
    target: str
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Lane:
    name: str
    marks: tuple[Mark, ...]


def timeline_of(
    unread: Unread, incidents: Incidents, quorums: Quorums, share: ShareGroups, streams: StreamsGroups
) -> list[Lane]:
    """Lanes without marks are left out."""
    lanes = [
        Lane("recorded", tuple(_recordings(unread))),
        Lane("incidents", tuple(_incidents(incidents))),
        *(Lane(_quorum_name(quorum, quorums), tuple(_quorum(quorum))) for quorum in quorums.shown[:_MOST_GROUPS]),
        *(Lane(group.group_id, tuple(_streams(group))) for group in streams.shown[:_MOST_GROUPS]),
    ]
    for group in share.shown[:_MOST_GROUPS]:
        marks = []
        for lane in group.members[:_MOST_MEMBERS]:
            if lane.held:
                first, last = group.buckets.start(lane.held[0].first), group.buckets.start(lane.held[-1].last + 1)
                name = lane.member.client_id or lane.member.member_id
                gone = bool(lane.member.outcomes["disconnected"])
                marks.append(_member(name, first, last, "held records", "share-groups", gone))
        lanes.append(Lane(group.group_id, tuple(marks)))
    return [lane for lane in lanes if lane.marks]


def _recordings(unread: Unread) -> Iterator[Mark]:
    for capture in unread.captures[:_MOST_RECORDINGS]:
        if capture.first_at is not None and capture.last_at is not None:
            name = file_name(capture.capture_uri)
            tips = (name, f"{clock(capture.first_at)} – {clock(capture.last_at)}", count(capture.exchanges, "exchange"))
            yield Mark(capture.first_at, capture.last_at, "c-other", name, tips, "unread")


def _incidents(incidents: Incidents) -> Iterator[Mark]:
    serious = [(place, incident) for place, incident in enumerate(incidents.shown, 1) if incident.severity != "info"]
    for place, incident in serious[:_MOST_INCIDENTS]:
        if incident.from_at is not None:
            to_at = incident.to_at or incident.from_at
            tips = (incident.title.replace("`", ""), _times(incident.from_at, to_at), STATE_WORDS[incident.severity])
            words = incident.title.replace("`", "")
            yield Mark(incident.from_at, to_at, f"t-{incident.severity}", words, tips, incident_name(place))


def _quorum_name(quorum: QuorumSummary, quorums: Quorums) -> str:
    """With the cluster if there are several."""
    return f"{_QUORUM} {quorum.cluster_id or 'of ?'}" if len(quorums.shown) > 1 else _QUORUM


def _quorum(quorum: QuorumSummary) -> Iterator[Mark]:
    for band in quorum.bands:
        name = f"node {band.leader_id}"
        if band.without_ms:
            since = band.from_at - 1000 * band.without_ms
            lasted = lasting(1000 * band.without_ms)
            yield Mark(since, band.from_at, "unheld", "", (f"no leader for {lasted}",), "quorum")
        tips = (f"{name} leads in epoch {band.epoch}", _times(band.from_at, band.to_at))
        yield Mark(band.from_at, band.to_at, "lane-leader", f"{name} leads", tips, "quorum")
    if quorum.leaderless_ms:
        since = quorum.last_at - 1000 * quorum.leaderless_ms
        yield Mark(since, quorum.last_at, "unheld", "", ("no leader at the end",), "quorum")
    for event in quorum.events:
        if event.kind in _EVENTS:
            words = EVENT_WORDS.get(event.kind, event.kind)
            words = words if event.node_id is None else f"node {event.node_id} {words}"
            yield Mark(event.at, event.at, "event", words, (words, when(event.at), *event_words(event)), "quorum")


def _streams(group: StreamsGroupSummary) -> Iterator[Mark]:
    lost = {member.member_id: member for member in group.lost}
    reach: dict[str, tuple[int, int]] = {}
    for lane in group.lanes:
        for piece in lane.pieces:
            if piece.member_id is not None:
                end = group.totals.last_at if piece.to_at is None else piece.to_at
                first, last = reach.get(piece.member_id, (piece.from_at, end))
                reach[piece.member_id] = min(first, piece.from_at), max(last, end)
    for member in list(group.members)[:_MOST_MEMBERS]:
        if member in reach:
            first, last = reach[member]
            gone = lost.get(member)
            last = last if gone is None else min(last, max(first, gone.last_seen_at))
            yield _member(group.members[member], first, last, "had tasks", "streams-groups", gone is not None)


def _member(name: str, first: int, last: int, did: str, target: str, gone: bool) -> Mark:
    tips = (name, f"{did} {_times(first, last)}", "disappeared without leaving the group" if gone else "")
    return Mark(first, last, "lane-member", name, tips, target, gone)


def _times(first: int, last: int) -> str:
    length = f" ({lasting(last - first)})" if last > first else ""
    return f"{clock(first)} – {clock(last)}{length}"


def reach(lanes: Sequence[Lane], first: int | None, last: int | None) -> tuple[int, int]:
    """From the recording's first moment to its last, or else from the first mark to the last. Both are 0 without
    marks."""
    times = [at for lane in lanes for mark in lane.marks for at in (mark.from_at, mark.to_at)]
    if not times:
        return 0, 0
    return min(times) if first is None else first, max(times) if last is None else last


def pauses(unread: Unread, first: int, last: int) -> tuple[tuple[int, int], ...]:
    """Long stretches in which nothing was recorded, in order. None if some recordings aren't known."""
    times = [(file.first_at, file.last_at) for file in unread.captures]
    known = sorted((since, until) for since, until in times if since is not None and until is not None)
    if unread.captures_left_out or not known:
        return ()
    gaps, until = [], first
    for since, end in known:
        gaps.append((until, since))
        until = max(until, end)
    gaps = [(begun, ended) for begun, ended in (*gaps, (until, last)) if ended > begun]
    recorded = last - first - sum(ended - begun for begun, ended in gaps)
    long = sorted((gap for gap in gaps if gap[1] - gap[0] > _BREAK_SHARE * recorded), key=lambda gap: gap[0] - gap[1])
    return tuple(sorted(long[:_MOST_BREAKS]))


def timeline_figure(lanes: Sequence[Lane], first: int, last: int, breaks: tuple[tuple[int, int], ...] = ()) -> Html:
    scale = TimeScale(first, last, _LEFT, breaks=breaks)
    parts: list[Html] = []
    top = float(_TOP)
    for lane in lanes:
        drawn, height = _lane(lane, scale, top)
        parts += drawn
        top += height + _BETWEEN
    bottom = top - _BETWEEN + _GAP
    parts = [*_breaks(scale, bottom), *parts]
    summary = "; ".join(f"{lane.name}: {', '.join(mark.tips[0] for mark in lane.marks[:4])}" for lane in lanes[:6])
    return figure(
        "timeline-figure",
        "What happened when",
        "Each mark links to its section. A cross means that a member disappeared without leaving the group.",
        svg(bottom + _BOTTOM, f"Timeline. {summary}", *time_axis(scale, _TOP, bottom), *parts, role="group"),
        legend([*_entries(lanes), *([("break", "nothing recorded")] if breaks else [])]),
        _table(lanes),
        heading="h3",
    )


def _breaks(scale: TimeScale, bottom: float) -> Iterator[Html]:
    """A pause is a band with its length below it, however long it was."""
    for since, until in scale.breaks:
        x, width, length = scale.x(since), scale.x(until) - scale.x(since), span((until - since) / 1000)
        words = f"nothing recorded for {length}"
        yield el("rect", tip(words), x=x, y=_TOP, width=width, height=bottom - _TOP, class_="break")
        if x + width < _UNIT:
            yield el("text", length, x=x + width / 2, y=bottom + 30, class_="tick", text_anchor="middle")


def _entries(lanes: Sequence[Lane]) -> list[tuple[str, str]]:
    kinds = {mark.kind for lane in lanes for mark in lane.marks}
    entries = (
        ("t-critical", "critical incident"),
        ("t-warning", "incident"),
        ("lane-leader", "leader of the quorum"),
        ("unheld", "no leader"),
        ("lane-member", "member"),
    )
    return [(kind, words) for kind, words in entries if kind in kinds]


def _lane(lane: Lane, scale: TimeScale, top: float) -> tuple[list[Html], float]:
    """Bars that overlap get rows of their own, and so do bars whose words do; flags span all rows."""
    parts = [el("text", shorten(lane.name, 18), tip(lane.name), x=0, y=top + _BAR - 3, class_="name")]
    ends: list[float] = []
    bars = sorted((mark for mark in lane.marks if mark.kind != "event"), key=lambda mark: (mark.from_at, mark.to_at))
    for place, mark in enumerate(bars):
        if lane.name.startswith(_QUORUM):
            # Leaders follow each other in one row: words have only the space between two of them.
            following = scale.x(bars[place + 1].from_at) if place + 1 < len(bars) else WIDTH
            bar, row = _place(mark, scale, ends[0] if ends else _LEFT, following), 0
        else:
            bar = _place(mark, scale, _LEFT, WIDTH)
            free = [row for row, end in enumerate(ends) if bar.first >= end + _APART]
            row = free[0] if free else len(ends)
        while len(ends) <= row:
            ends.append(0.0)
        ends[row] = max(ends[row], bar.last)
        drawn = _bar(mark, bar, top + row * (_BAR + _GAP))
        parts.append(el("a", drawn, href=f"#{mark.target}", class_="mark", aria_label=_words(mark)))
    height = max(1, len(ends)) * (_BAR + _GAP)
    for mark in lane.marks:
        if mark.kind == "event":
            line = f"M{coordinate(scale.x(mark.from_at))} {coordinate(top - 3)}V{coordinate(top + height)}"
            flag = [el("path", d=line, class_="event"), el("path", d=line, class_="reach")]
            parts.append(el("a", tip(*mark.tips), flag, href=f"#{mark.target}", class_="mark", aria_label=_words(mark)))
    return parts, height


class _Bar(NamedTuple):
    """A bar from `left` to `right`, with its words from `first` or to `last`: in the bar, after it or before it."""

    left: float
    right: float
    first: float
    last: float
    words: str
    side: str


def _place(mark: Mark, scale: TimeScale, least: float, most: float) -> _Bar:
    """Words are in the bar or beside it, within `least` and `most`; if they don't fit, only the tooltip has them."""
    left = scale.x(mark.from_at)
    width = max(4.0, scale.x(mark.to_at) - left)
    right = left + width
    end = right + (6 if mark.gone else 0)
    if mark.words and len(mark.words) * _LETTER + 8 <= width:
        return _Bar(left, right, left, end, mark.words, "in")
    after, before = int((most - end - 10) / _LETTER), int((left - least - 10) / _LETTER)
    room = after if after >= len(mark.words) or after >= before else before
    if not mark.words or room < min(len(mark.words), _LEAST_LETTERS):
        return _Bar(left, right, left, end, "", "in")
    words = _cut(mark.words, room)
    if room == after:
        return _Bar(left, right, left, end + 5 + len(words) * _LETTER, words, "after")
    return _Bar(left, right, left - 5 - len(words) * _LETTER, end, words, "before")


def _bar(mark: Mark, bar: _Bar, y: float) -> list[Html]:
    box = {"x": bar.left, "y": y, "width": bar.right - bar.left, "height": _BAR}
    parts = [tip(*mark.tips), el("rect", **box, rx=2, class_=f"{mark.kind} edge")]
    if mark.gone:
        cross = f"M{coordinate(bar.right - 4)} {coordinate(y + 3)}l8 8m0 -8l-8 8"
        parts.append(el("path", d=cross, class_="cross"))
    if bar.words and bar.side == "in":
        parts.append(el("text", bar.words, x=bar.left + 5, y=y + 11, class_=f"on-{mark.kind}"))
    elif bar.words and bar.side == "after":
        parts.append(el("text", bar.words, x=bar.right + (11 if mark.gone else 5), y=y + 11, class_="flag"))
    elif bar.words:
        parts.append(el("text", bar.words, x=bar.left - 5, y=y + 11, class_="flag", text_anchor="end"))
    return parts


def _cut(text: str, letters: int) -> str:
    """Cut at the end: sentences begin with what matters."""
    return text if len(text) <= letters else f"{text[: letters - 1].rstrip()}…"


def _words(mark: Mark) -> str:
    return "; ".join(text for text in mark.tips if text)


def _table(lanes: Sequence[Lane]) -> Html:
    rows = [
        (lane.name, el("a", _words(mark), href=f"#{mark.target}"), when(mark.from_at), when(mark.to_at))
        for lane in lanes
        for mark in lane.marks
    ]
    return table("Timeline", ("of", "what", "from (UTC)", "to (UTC)"), rows)
