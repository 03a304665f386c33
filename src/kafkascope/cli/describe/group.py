"""Prints a `ConsumerGroupView` with its members and lag by partition, and a `GroupList` by type."""

from kafkascope.cli.describe.gaps import show_gaps
from kafkascope.cli.describe.share import STATE_STYLES, group_title, held, named, short, show_members
from kafkascope.cli.tables import Cell, Content, grid
from kafkascope.cli.terminal import heading, paint, prose, remark, title
from kafkascope.client.describe.group import ConsumerGroupView, GroupMember
from kafkascope.client.describe.groups import GroupList, GroupListing
from kafkascope.formatting import count, number


def show_group(group: ConsumerGroupView) -> None:
    facts = f"{group.protocol_type or 'no'} protocol"
    if group.type == "consumer":
        facts = f"epoch {group.group_epoch}, assignment {group.assignment_epoch}"
    if group.assignor:
        facts += f" by {group.assignor}"
    group_title(f"{group.type.capitalize()} group", group.group_id, group.state, group.coordinator, facts)
    show_members(
        ("client", "member", "host", "protocol", "epoch", "subscribes to", "has"),
        [_member(member) for member in group.members],
    )
    for member in group.members:
        if member.target is not None and member.target != member.assignment:
            remark(f"{member.client_id} ({short(member.member_id)}) is to have {held(member.target)}", "  ")
    if group.partitions:
        heading(f"Partitions, lag {number(group.lag)} in all")
        names = {member.member_id: member.client_id for member in group.members}
        rows: list[tuple[Content, ...]] = [
            (
                partition.topic,
                partition.partition,
                number(partition.current_offset, "-"),
                number(partition.end_offset),
                number(partition.lag, "-" if partition.current_offset is None else "?"),
                names.get(partition.member or "", partition.member) or Cell("nobody", ("dim",)),
            )
            for partition in group.partitions
        ]
        grid(("topic", "partition", "committed", "end", "lag", "member"), rows, "partition,committed,end,lag")
    if group.past_end:
        print()
        warning = f"Committed past the end: {', '.join(group.past_end)}. Records that were read are gone, or somebody"
        prose(paint(f"{warning} set the offset. In the sum it counts as no lag.", "red"), "  ")
    show_gaps(group.gaps)


def _member(member: GroupMember) -> tuple[Content, ...]:
    subscribed = "?" if member.subscriptions is None else ", ".join(member.subscriptions)
    if member.regex:
        subscribed = f"{subscribed} /{member.regex}/".strip()
    return (
        member.client_id,
        short(member.member_id) + (f" ({member.instance_id})" if member.instance_id else ""),
        member.host.lstrip("/"),
        member.protocol if member.member_epoch is not None else "",
        member.member_epoch,
        subscribed,
        held(member.assignment),
    )


def show_groups(view: GroupList) -> None:
    title(count(len(view.groups), "group"), _by_type(view.groups))
    if view.groups:
        print()
    rows: list[tuple[Content, ...]] = [
        (
            named(group.group_id),
            group.type,
            Cell(group.state or "?", (STATE_STYLES.get(group.state or "", "yellow"),)),
            number(group.members),
            f"node {group.coordinator.node_id}",
            group.protocol if group.type == "classic" and group.protocol != "consumer" else "",
        )
        for group in view.groups
    ]
    grid(("group", "type", "state", "members", "coordinator", "protocol"), rows, "members")
    if view.complete is False:
        print()
        remark("Groups that we may not describe are left out. With the ACL Describe on Cluster all are listed.")
    show_gaps(view.gaps)


def _by_type(groups: tuple[GroupListing, ...]) -> str:
    counts = {kind: sum(group.type == kind for group in groups) for kind in sorted({group.type for group in groups})}
    return ", ".join(f"{groups_of} {kind}" for kind, groups_of in counts.items())
