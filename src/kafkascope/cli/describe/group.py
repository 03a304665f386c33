"""`ConsumerGroupView` and `GroupList` in, text out: members, lag by partition; every group of a cluster by type."""

from kafkascope.cli.describe.gaps import show_gaps
from kafkascope.cli.describe.share import STATE_STYLES, group_title, held, named, short, show_members
from kafkascope.cli.tables import Cell, Content, grid
from kafkascope.cli.terminal import heading, paint, plural, prose, remark, title
from kafkascope.cli.units import number
from kafkascope.client.describe.group import ConsumerGroupView, GroupMember
from kafkascope.client.describe.groups import GroupList, GroupListing


def show_group(group: ConsumerGroupView) -> None:
    facts = f"{group.protocol_type or 'no'} protocol"
    if group.type == "consumer":
        facts = f"epoch {group.group_epoch}, assignment {group.assignment_epoch}"
    if group.assignor:
        facts += f" by {group.assignor}"
    group_title(f"{group.type.capitalize()} group", group.group_id, group.state, group.coordinator, facts)
    show_members(
        ("client", "member", "host", "protocol", "epoch", "subscribes to", "has"),
        [_member(one) for one in group.members],
    )
    for one in group.members:
        if one.target is not None and one.target != one.assignment:
            remark(f"{one.client_id} ({short(one.member_id)}) shall have {held(one.target)}", "  ")
    if group.partitions:
        heading(f"Partitions, lag {number(group.lag)} in all")
        names = {one.member_id: one.client_id for one in group.members}
        rows: list[tuple[Content, ...]] = [
            (
                one.topic,
                one.partition,
                number(one.current_offset, "-"),
                number(one.end_offset),
                number(one.lag, "-" if one.current_offset is None else "?"),
                names.get(one.member or "", one.member) or Cell("nobody", ("dim",)),
            )
            for one in group.partitions
        ]
        grid(("topic", "partition", "committed", "end", "lag", "member"), rows, "partition,committed,end,lag")
    if group.past_end:
        print()
        said = (
            f"Committed past the end: {', '.join(group.past_end)}. Records that were read are gone, or somebody set it"
        )
        prose(paint(f"{said} so. It counts as no lag in the sum.", "red"), "  ")
    show_gaps(group.gaps)


def _member(one: GroupMember) -> tuple[Content, ...]:
    subscribed = "?" if one.subscriptions is None else ", ".join(one.subscriptions)
    if one.regex:
        subscribed = f"{subscribed} /{one.regex}/".strip()
    return (
        one.client_id,
        short(one.member_id) + (f" ({one.instance_id})" if one.instance_id else ""),
        one.host.lstrip("/"),
        one.protocol if one.member_epoch is not None else "",
        one.member_epoch,
        subscribed,
        held(one.assignment),
    )


def show_groups(view: GroupList) -> None:
    title(plural(len(view.groups), "group"), _by_type(view.groups))
    if view.groups:
        print()
    rows: list[tuple[Content, ...]] = [
        (
            named(one.group_id),
            one.type,
            Cell(one.state or "?", (STATE_STYLES.get(one.state or "", "yellow"),)),
            number(one.members),
            f"node {one.coordinator.node_id}",
            one.protocol if one.type == "classic" and one.protocol != "consumer" else "",
        )
        for one in view.groups
    ]
    grid(("group", "type", "state", "members", "coordinator", "protocol"), rows, "members")
    if view.complete is False:
        print()
        remark("Groups that we may not describe are left out. All are listed with the ACL Describe on Cluster.")
    show_gaps(view.gaps)


def _by_type(groups: tuple[GroupListing, ...]) -> str:
    counts = {kind: sum(one.type == kind for one in groups) for kind in sorted({one.type for one in groups})}
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())
