"""Renders the section on Streams groups."""

from kafkascope.formatting import count
from kafkascope.markup import Html, el
from kafkascope.report.charts.figure import empty, table, tiles
from kafkascope.report.charts.tasks import tasks_figure
from kafkascope.report.page.links import Links, streams_place
from kafkascope.report.summaries.streams import StreamsGroups, StreamsGroupSummary
from kafkascope.report.words import interval, lasting, number, when

_OPEN = 3


def streams_section(groups: StreamsGroups, links: Links) -> Html:
    return el(
        "section",
        el("h2", "Streams groups", id="streams-groups"),
        None if groups.shown else empty("No heartbeat or description of a streams group was recorded."),
        [_group(group, place, links) for place, group in enumerate(groups.shown, 1)],
        _others(groups),
        aria_labelledby="streams-groups",
    )


def _others(groups: StreamsGroups) -> Html | None:
    """Groups that get only a row of a table."""
    if not groups.others:
        return None
    rows = [
        (
            el("code", group.group_id),
            number(group.totals.tasks),
            number(group.totals.most_members),
            number(group.totals.moves),
            lasting(1000 * group.totals.pause_max_ms),
            lasting(1000 * group.totals.unheld_ms),
            number(group.totals.lost),
        )
        for group in groups.others
    ]
    head = (
        "streams group",
        "tasks #",
        "most members #",
        "moves #",
        "longest pause #",
        "without owner #",
        "members lost #",
    )
    lines = table("Streams groups with less trouble", head, rows, groups.left_out, "streams groups")
    note = "kafkascope report --group G draws any of them."
    return el("section", el("h3", "Other streams groups"), el("p", note, class_="note"), lines)


def _group(group: StreamsGroupSummary, place: int, links: Links) -> Html:
    totals = group.totals
    line = (
        f"{count(totals.tasks, 'task')}, {count(totals.moves, 'move')}, "
        f"{interval(totals.first_at, totals.last_at, 1_000_000)} UTC"
    )
    return el(
        "details",
        el("summary", el("h3", el("code", group.group_id)), el("span", line, class_="line")),
        tiles(_tiles(group)),
        links.about(streams_place(place)),
        tasks_figure(group, f"streams-{place}"),
        _moves(group),
        _lost(group),
        _statuses(group),
        id=streams_place(place),
        class_="group",
        open=place <= _OPEN,
    )


def _tiles(group: StreamsGroupSummary) -> list[tuple[str, str, str]]:
    totals = group.totals
    missing = totals.standbys_missing
    return [
        ("members", number(totals.members), f"as last seen; {number(totals.most_members)} at most"),
        ("tasks", number(totals.tasks), f"topology epoch {number(totals.topology_epoch)}"),
        ("moves", number(totals.moves), "active tasks that changed hands"),
        ("longest pause", lasting(1000 * totals.pause_max_ms), f"{lasting(1000 * totals.pause_total_ms)} of all tasks"),
        ("without owner", lasting(1000 * totals.unheld_ms), "sum over all tasks"),
        ("members lost", number(totals.lost), f"{number(totals.left)} left, {number(totals.fenced)} fenced"),
        (
            "standbys missing",
            number(missing),
            "as last seen" if missing is not None else "the configured number wasn't recorded",
        ),
        ("state", totals.state or "unknown", f"group epoch {number(totals.group_epoch)}"),
    ]


def _moves(group: StreamsGroupSummary) -> Html:
    if not group.moves:
        return el("section", el("h4", "Moves"), empty("No active task changed hands."))
    rows = [
        (
            el("code", move.task),
            el("code", move.from_member),
            el("code", move.to_member),
            when(move.released_at),
            lasting(1000 * move.pause_ms),
            move.cause,
            "warm" if move.warm else "cold",
        )
        for move in group.moves
    ]
    head = ("task", "from", "to", "released (UTC)", "pause #", "cause", "state there")
    inside = table(f"Moves of {group.group_id}", head, rows, group.moves_left_out, "moves with shorter pauses")
    return el("details", el("summary", f"Moves: {number(len(rows) + group.moves_left_out)}"), inside, class_="data")


def _lost(group: StreamsGroupSummary) -> Html:
    if not group.lost:
        return el("section", el("h4", "Members lost"), empty("No member disappeared without leaving the group."))
    rows = [
        (
            el("code", member.member),
            when(member.last_seen_at),
            when(member.noticed_at),
            lasting(1000 * member.silent_ms),
            "its connection closed" if member.how == "closed" else "it stopped sending heartbeats",
            number(member.active_tasks),
            number(member.standby_tasks),
        )
        for member in group.lost
    ]
    head = ("member", "last seen (UTC)", "noticed (UTC)", "noticed after #", "how", "active tasks #", "standbys #")
    members = table("Members that disappeared without leaving the group", head, rows, group.lost_left_out, "members")
    return el("section", el("h4", "Members lost"), members)


def _statuses(group: StreamsGroupSummary) -> Html:
    if not group.statuses:
        return el("section", el("h4", "Statuses"), empty("The coordinator reported no problem to the members."))
    rows = [
        (
            status.name,
            when(status.from_at),
            "the end" if status.to_at is None else when(status.to_at),
            number(status.members),
            status.detail,
        )
        for status in group.statuses
    ]
    head = ("status", "from (UTC)", "to (UTC)", "members #", "detail")
    statuses = table(
        "Statuses that the coordinator reported to the members", head, rows, group.statuses_left_out, "statuses"
    )
    return el("section", el("h4", "Statuses"), statuses)
