"""Draws one lane per Streams task: the active member by colour, copies below, red where no member had the task."""

from kafkascope.formatting import count
from kafkascope.markup import Html, coordinate, el, join
from kafkascope.report.charts.axes import TimeScale, svg, time_axis
from kafkascope.report.charts.figure import empty, figure, legend, more, table, tip
from kafkascope.report.summaries.streams import StreamsGroupSummary
from kafkascope.report.summaries.streams_lanes import TaskInterval, TaskLane
from kafkascope.report.words import UNKNOWN_TEXT, clock, lasting, shorten, when

_LEFT = 62
_COLOURS = 8
_ACTIVE, _COPY, _COPIES = 16, 6, 2
_ROW, _TOP, _BOTTOM = _ACTIVE + _COPY * _COPIES + 8, 6, 36
_LETTER = 6.4  # narrowest letter of a label, in pixels


def tasks_figure(group: StreamsGroupSummary, name: str) -> Html:
    title = "Which member had which task, and when no member did"
    if not group.lanes:
        return el("section", el("h4", title), empty("No member reported a task in this time."), class_="chart")
    scale = TimeScale(group.totals.first_at, group.totals.last_at, _LEFT)
    bottom = float(_TOP + _ROW * len(group.lanes))
    parts = time_axis(scale, _TOP, bottom)
    labels = short_names(list(group.members.values()))
    colours = {member: f"m{at}" if at < _COLOURS else "m-other" for at, member in enumerate(group.members)}
    for at, lane in enumerate(group.lanes):
        parts += _lane(group, lane, scale, _TOP + _ROW * at, labels, colours)
    short = sum(lane.too_short for lane in group.lanes)
    note = (
        "One lane per task. The thick bar is the member that processed it; members in the thin hatched bars keep a copy"
        " of its state. A triangle marks a move from another member."
    )
    return figure(
        f"{name}-tasks",
        title,
        note + (f" Not drawn, too short to be seen: {count(short, 'interval')}." if short else ""),
        svg(bottom + _BOTTOM, f"Lanes of {count(len(group.lanes), 'task')}: {_summary(group)}", *parts),
        legend(_entries(group, colours)),
        join([_table(group), more(group.lanes_left_out, "tasks that moved less")]),
    )


def short_names(names: list[str]) -> dict[str, str]:
    """`first` of `first-StreamThread-1-consumer`, if all names end this way."""
    parts = [name.split("-") for name in names]
    same = 0
    while (
        len(names) > 1
        and all(len(words) > same + 1 for words in parts)
        and len({words[-1 - same] for words in parts}) == 1
    ):
        same += 1
    return {name: "-".join(words[: len(words) - same]) for name, words in zip(names, parts, strict=True)}


def _entries(group: StreamsGroupSummary, colours: dict[str, str]) -> list[tuple[str, str]]:
    drawn = {piece.member_id for lane in group.lanes for piece in lane.pieces}
    entries = [(colours[member], name) for member, name in group.members.items() if member in drawn]
    not_coloured = sum(colour == "m-other" for colour, _ in entries)
    entries = [entry for entry in entries if entry[0] != "m-other"]
    entries += [("m-other", count(not_coloured, "more member"))] if not_coloured else []
    roles = {piece.role for lane in group.lanes for piece in lane.pieces}
    entries += [("role-standby", "standby (hatched)")] if "standby" in roles else []
    entries += [("role-warmup", "warm-up (dotted)")] if "warmup" in roles else []
    return entries + ([("unheld", "nobody held it")] if "unheld" in roles else [])


def _lane(
    group: StreamsGroupSummary,
    lane: TaskLane,
    scale: TimeScale,
    top: float,
    labels: dict[str, str],
    colours: dict[str, str],
) -> list[Html]:
    y = top + 3
    parts = [
        el("rect", x=scale.left, y=y, width=scale.right - scale.left, height=_ACTIVE, class_="lane"),
        el("text", shorten(lane.task, 9), el("title", f"task {lane.task}"), x=0, y=y + 12, class_="name"),
    ]
    busy = [0] * _COPIES
    for piece in lane.pieces:
        name = group.members.get(piece.member_id or "", piece.member_id or "")
        left, right = scale.x(piece.from_at), scale.x(scale.last if piece.to_at is None else piece.to_at)
        width = max(1.5, right - left)
        tooltip = tip(f"task {lane.task}", *_words(piece, name, scale))
        if piece.role == "unheld":
            parts.append(el("rect", tooltip, x=left, y=y, width=width, height=_ACTIVE, class_="unheld mark"))
            label = lasting((scale.last if piece.to_at is None else piece.to_at) - piece.from_at)
            if width > len(label) * _LETTER + 8:
                parts.append(el("text", label, x=left + 4, y=y + 12, class_="on-unheld"))
            continue
        colour = colours.get(piece.member_id or "", "m-other")
        if piece.role == "active":
            parts.append(el("rect", tooltip, x=left, y=y, width=width, height=_ACTIVE, class_=f"{colour} mark edge"))
            if piece.moved:
                mark = f"M{coordinate(left)} {coordinate(y)}l5 {coordinate(_ACTIVE / 2)}l-5 {coordinate(_ACTIVE / 2)}z"
                parts.append(el("path", d=mark, class_="moved"))
            label = labels.get(name, name)
            if width > len(label) * _LETTER + 14:
                parts.append(el("text", label, x=left + 8, y=y + 12, class_=f"on-{colour}"))
            continue
        row = next((at for at in range(_COPIES) if busy[at] <= piece.from_at), _COPIES - 1)
        busy[row] = scale.last if piece.to_at is None else piece.to_at
        y_copy = y + _ACTIVE + 1 + _COPY * row
        kind = f"{colour}-{piece.role} mark"
        parts.append(el("rect", tooltip, x=left, y=y_copy, width=width, height=_COPY - 1, class_=kind))
    return parts


def _words(piece: TaskInterval, name: str, scale: TimeScale) -> list[str]:
    end = "the end" if piece.to_at is None else clock(piece.to_at)
    length = lasting((scale.last if piece.to_at is None else piece.to_at) - piece.from_at)
    who = "nobody held it" if piece.role == "unheld" else f"{piece.role} at {name}"
    words = [who, f"{clock(piece.from_at)} – {end} ({length})"]
    if piece.pause_ms is not None:
        words.append(f"after a pause of {lasting(1000 * piece.pause_ms)}, {'warm' if piece.warm else 'cold'}")
    if piece.ended_by:
        words.append(f"ended: {piece.ended_by}")
    return words


def _summary(group: StreamsGroupSummary) -> str:
    totals = group.totals
    return (
        f"{count(totals.moves, 'move')} between {count(len(group.members), 'member')}, the longest pause "
        f"{lasting(1000 * totals.pause_max_ms)}, {count(totals.lost, 'member')} lost."
    )


def _table(group: StreamsGroupSummary) -> Html:
    rows = [
        (
            lane.task,
            piece.role,
            "nobody"
            if piece.role == "unheld"
            else group.members.get(piece.member_id or "", piece.member_id or UNKNOWN_TEXT),
            when(piece.from_at),
            "the end of the recording" if piece.to_at is None else when(piece.to_at),
            lasting((group.totals.last_at if piece.to_at is None else piece.to_at) - piece.from_at),
            piece.ended_by or "",
        )
        for lane in group.lanes
        for piece in lane.pieces
    ]
    head = ("task", "role", "member", "from (UTC)", "to (UTC)", "length #", "ended by")
    return table(f"Tasks of {group.group_id}", head, rows)
