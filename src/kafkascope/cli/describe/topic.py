"""Prints a `TopicView` and `ResourceConfigs`."""

from collections.abc import Sequence

from kafkascope.cli.describe.gaps import show_gaps
from kafkascope.cli.tables import Cell, Content, bad, grid
from kafkascope.cli.terminal import heading, paint, prose, remark, title, width
from kafkascope.cli.units import number_runs
from kafkascope.client.describe.configs import DEFAULT, ResourceConfigs
from kafkascope.client.describe.topic import PartitionView, TopicView
from kafkascope.client.describe.values import Setting
from kafkascope.formatting import count, number


def show_topic(view: TopicView) -> None:
    facts = [count(len(view.partitions), "partition")]
    if view.topic_id:
        facts.append(f"id {view.topic_id}")
    if view.internal:
        facts.append("internal")
    if view.min_in_sync_replicas is not None:
        facts.append(f"min.insync.replicas {view.min_in_sync_replicas}")
    title(f"Topic {view.name}", ", ".join(facts))
    print()
    head = ("partition", "leader", "replicas", "in sync", "first", "end", "records", "")
    grid(head, [_row(partition, view) for partition in view.partitions], "partition,leader,first,end,records")
    for what, numbers in (
        ("without a leader", view.without_leader),
        ("below min.insync.replicas: writes with acks=all are refused", view.below_min_in_sync),
    ):
        if numbers:
            prose(paint(f"{what}: {number_runs(numbers)}", "red"), "  ")
    if view.settings:
        heading("Settings")
        grid(("name", "value"), [(setting.name, _value(setting.value, setting.sensitive)) for setting in view.settings])
    if view.operations:
        remark(f"Our permissions on this topic: {', '.join(view.operations)}.", "  ")
    show_gaps(view.gaps)


def _row(partition: PartitionView, view: TopicView) -> tuple[Content, ...]:
    remarks = []
    if partition.partition in view.under_replicated:
        remarks.append("under-replicated")
    if partition.offline:
        remarks.append(f"offline {_nodes(partition.offline)}")
    if partition.eligible:
        remarks.append(f"eligible {_nodes(partition.eligible)}")
    if partition.adding:
        remarks.append(f"adding {_nodes(partition.adding)}")
    if partition.removing:
        remarks.append(f"removing {_nodes(partition.removing)}")
    records = (
        None
        if partition.start_offset is None or partition.end_offset is None
        else partition.end_offset - partition.start_offset
    )
    return (
        partition.partition,
        bad("none") if partition.leader is None else partition.leader,
        _nodes(partition.replicas),
        Cell(_nodes(partition.in_sync), ("red",) if partition.partition in view.under_replicated else ()),
        number(partition.start_offset),
        number(partition.end_offset),
        number(records),
        ", ".join(remarks),
    )


def _nodes(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def show_configs(view: ResourceConfigs, everything: bool) -> None:
    name = view.name or "(all)"
    shown = [setting for setting in view.settings if everything or setting.source != DEFAULT]
    rest = len(view.settings) - len(shown)
    title(f"{view.kind} {name}", f"{count(rest, 'default')} left out, --all shows them" if rest else "")
    for source in sorted({setting.source for setting in shown}, key=lambda name: (name == DEFAULT, name)):
        print(f"  from {paint(source, 'bold')}")
        for setting in shown:
            if setting.source == source:
                _setting(setting)
    show_gaps(view.gaps)


def _setting(setting: Setting) -> None:
    """A value is never wrapped, however long: a line break would look like a part of it."""
    value = _value(setting.value, setting.sensitive)
    text = paint(value.text, *value.styles)
    if len(setting.name) + len(value.text) + 7 <= width():
        print(f"    {setting.name} = {text}")
    else:
        print(f"    {setting.name} =\n      {text}")


def _value(value: str | None, sensitive: bool) -> Cell:
    if sensitive:
        return Cell("sensitive, not shown", ("dim",))
    return Cell("not set", ("dim",)) if value is None else Cell(value if value else '""')
