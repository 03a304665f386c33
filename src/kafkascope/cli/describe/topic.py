"""`TopicView` and `ResourceConfigs` in, text out."""

from collections.abc import Sequence

from kafkascope.cli.describe.gaps import show_gaps
from kafkascope.cli.tables import Cell, Content, bad, grid
from kafkascope.cli.terminal import heading, paint, plural, prose, remark, title, width
from kafkascope.cli.units import number, number_runs
from kafkascope.client.describe.configs import DEFAULT, ResourceConfigs
from kafkascope.client.describe.topic import PartitionView, TopicView
from kafkascope.client.describe.values import Setting


def show_topic(view: TopicView) -> None:
    facts = [plural(len(view.partitions), "partition")]
    if view.topic_id:
        facts.append(f"id {view.topic_id}")
    if view.internal:
        facts.append("internal")
    if view.min_in_sync_replicas is not None:
        facts.append(f"min.insync.replicas {view.min_in_sync_replicas}")
    title(f"Topic {view.name}", ", ".join(facts))
    print()
    head = ("partition", "leader", "replicas", "in sync", "first", "end", "records", "")
    grid(head, [_row(one, view) for one in view.partitions], "partition,leader,first,end,records")
    for what, numbers in (
        ("without a leader", view.without_leader),
        ("below min.insync.replicas: writes with acks=all are refused", view.below_min_in_sync),
    ):
        if numbers:
            prose(paint(f"{what}: {number_runs(numbers)}", "red"), "  ")
    if view.settings:
        heading("Settings")
        grid(("name", "value"), [(one.name, _value(one.value, one.sensitive)) for one in view.settings])
    if view.operations:
        remark(f"On this topic we may {', '.join(view.operations)}.", "  ")
    show_gaps(view.gaps)


def _row(one: PartitionView, view: TopicView) -> tuple[Content, ...]:
    remarks = []
    if one.partition in view.under_replicated:
        remarks.append("under-replicated")
    if one.offline:
        remarks.append(f"offline {_nodes(one.offline)}")
    if one.eligible:
        remarks.append(f"eligible {_nodes(one.eligible)}")
    if one.adding:
        remarks.append(f"adding {_nodes(one.adding)}")
    if one.removing:
        remarks.append(f"removing {_nodes(one.removing)}")
    records = None if one.start_offset is None or one.end_offset is None else one.end_offset - one.start_offset
    return (
        one.partition,
        bad("none") if one.leader is None else one.leader,
        _nodes(one.replicas),
        Cell(_nodes(one.in_sync), ("red",) if one.partition in view.under_replicated else ()),
        number(one.start_offset),
        number(one.end_offset),
        number(records),
        ", ".join(remarks),
    )


def _nodes(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def show_configs(view: ResourceConfigs, everything: bool) -> None:
    name = view.name or "(all)"
    shown = [one for one in view.settings if everything or one.source != DEFAULT]
    rest = len(view.settings) - len(shown)
    title(f"{view.kind} {name}", f"{plural(rest, 'default')} left out, --all shows them" if rest else "")
    for source in sorted({one.source for one in shown}, key=lambda one: (one == DEFAULT, one)):
        print(f"  from {paint(source, 'bold')}")
        for one in shown:
            if one.source == source:
                _setting(one)
    show_gaps(view.gaps)


def _setting(one: Setting) -> None:
    """A value is printed as it is, however long: a break in it would be taken for its own."""
    value = _value(one.value, one.sensitive)
    said = paint(value.text, *value.styles)
    if len(one.name) + len(value.text) + 7 <= width():
        print(f"    {one.name} = {said}")
    else:
        print(f"    {one.name} =\n      {said}")


def _value(value: str | None, sensitive: bool) -> Cell:
    if sensitive:
        return Cell("sensitive, not shown", ("dim",))
    return Cell("not set", ("dim",)) if value is None else Cell(value if value else '""')
