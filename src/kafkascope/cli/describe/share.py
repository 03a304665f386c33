"""Prints a `ShareGroupView`: state, members, every partition with its start, end and lag, delivery settings."""

import re
from collections.abc import Sequence

from kafkascope.cli.describe.gaps import show_gaps
from kafkascope.cli.tables import Cell, Content, bad, good, grid, odd
from kafkascope.cli.terminal import heading, paint, prose, title
from kafkascope.cli.units import number_runs
from kafkascope.client.describe.share_group import ShareGroupView, SharePartition
from kafkascope.client.describe.values import NodeAddress, Setting, TopicAssignment
from kafkascope.formatting import number

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
STATE_STYLES = {"Stable": "green", "Empty": "dim", "Dead": "red", "NotReady": "red"}


def show_share_group(group: ShareGroupView) -> None:
    group_title("Share group", group.group_id, group.state, group.coordinator, facts_of(group))
    show_members(
        ("client", "member", "host", "epoch", "subscribes to", "has"),
        [
            (
                member.client_id,
                short(member.member_id),
                member.host.lstrip("/"),
                member.member_epoch,
                ", ".join(member.subscriptions),
                held(member.assignment),
            )
            for member in group.members
        ],
    )
    if group.partitions:
        heading(f"Partitions, lag {number(group.lag)} in all")
        names = {member.member_id: member.client_id for member in group.members}
        head = ("topic", "partition", "start", "end", "lag", "", "members")
        rows = [_row(partition, names) for partition in group.partitions]
        grid(head, rows, "partition,start,end,lag")
    if group.standing_still:
        print()
        prose(
            paint(
                f"Stalled: {', '.join(group.standing_still)}. Records wait there, and none was acknowledged or "
                "archived between the two looks.",
                "red",
            ),
            "  ",
        )
    show_settings(group.settings)
    show_gaps(group.gaps)


def facts_of(group: ShareGroupView) -> str:
    return f"epoch {group.group_epoch}, assignment {group.assignment_epoch} by {group.assignor or 'nobody yet'}"


def _row(partition: SharePartition, names: dict[str, str]) -> tuple[Content, ...]:
    state: Content = ""
    if partition.standing_still:
        state = bad("stalled")
    elif partition.standing_still is False and partition.lag:
        state = good("moves")
    elif partition.start_offset is None:
        state = odd("not read yet")
    holders = ", ".join(names.get(member, short(member)) for member in partition.members)
    return (
        partition.topic,
        partition.partition,
        number(partition.start_offset, "-"),
        number(partition.end_offset),
        number(partition.lag, "-" if partition.start_offset is None else "?"),
        state,
        holders or Cell("nobody", ("yellow",)),
    )


def named(group: str) -> str:
    """The id of a group; a classic group may have the empty one."""
    return group or '""'


def group_title(what: str, name: str, state: str, coordinator: NodeAddress | None, facts: str) -> None:
    """The first lines of every kind of group."""
    title(f"{what} {named(name)}")
    label = paint(state, STATE_STYLES.get(state, "yellow"), "bold")
    where = f", coordinated by node {coordinator.node_id} ({coordinator.address})" if coordinator else ""
    prose(f"{label}, {facts}{where}", "  ")


def show_members(head: Sequence[str], rows: Sequence[Sequence[Content]]) -> None:
    heading("Members" if rows else "No members")
    grid(head, rows, "epoch")


def show_settings(settings: Sequence[Setting]) -> None:
    if not settings:
        return
    heading("Settings")
    grid(("name", "value", "from"), [(setting.name, setting.value or "", _from(setting)) for setting in settings])


def _from(setting: Setting) -> Cell:
    return Cell(setting.source, ("dim",) if setting.source == "default" else ("bold",))


def short(member: str) -> str:
    """The part of a member id that identifies it; `--json` has all of it."""
    own = _UUID.search(member)
    start = own.start() if own else 0  # after the client id, which a broker puts before the id of a classic member
    return f"{member[start : start + 8]}…" if "-" in member and len(member) > 12 else member[:12]


def held(assignment: Sequence[TopicAssignment]) -> str:
    return "; ".join(f"{topic.topic} {number_runs(topic.partitions)}" for topic in assignment) or "nothing"
