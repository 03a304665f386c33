"""Prints a `StreamsGroupView`: topology, processes with their current and target tasks, lag, what it waits for."""

from kafkascope.cli.describe.gaps import show_gaps
from kafkascope.cli.describe.share import group_title, short, show_settings
from kafkascope.cli.tables import Cell, Content, grid, odd
from kafkascope.cli.terminal import heading, paint, prose, remark
from kafkascope.client.describe.streams_values import (
    InputPartition,
    InternalTopic,
    StreamsGroupView,
    StreamsMember,
    Subtopology,
    Tasks,
)
from kafkascope.formatting import number

ROLES = ("active", "standby", "warmup")


def show_streams_group(group: StreamsGroupView) -> None:
    facts = f"epoch {group.group_epoch}, assignment {group.assignment_epoch}"
    if group.assignor:
        facts += f" by {group.assignor}"
    if group.topology_epoch is not None:
        facts += f", topology {group.topology_epoch}"
    group_title("Streams group", group.group_id, group.state, group.coordinator, facts)
    if group.waits:
        heading("The rebalance waits")
        for line in group.waits:
            prose(paint(line, "yellow"), "    ", "  ")
    for status in group.statuses:
        prose(f"{paint(status.name, 'red')}: {status.detail}", "    ", "  ")
    _topology(group)
    _members(group)
    if group.inputs:
        heading(f"Input, lag {number(group.lag)} in all")
        # names of repartition topics may be as wide as the window
        for topic in dict.fromkeys(partition.topic for partition in group.inputs):
            print(f"  {paint(topic, 'bold')}")
            rows = [_input(partition) for partition in group.inputs if partition.topic == topic]
            grid(("partition", "task", "committed", "end", "lag"), rows, "partition,committed,end,lag", "    ")
    show_settings(group.settings)
    show_gaps(group.gaps)


def _input(partition: InputPartition) -> tuple[Content, ...]:
    figures = number(partition.current_offset, "-"), number(partition.end_offset), number(partition.lag)
    return partition.partition, partition.task, *figures


def _topology(group: StreamsGroupView) -> None:
    if not group.subtopologies:
        return
    heading("Topology")
    for part in group.subtopologies:
        print(f"  {paint(f'sub-topology {part.subtopology_id}', 'bold')}")
        for name, text in _lists(part):
            if text:
                prose(text, " " * 15, f"    {name:<11}")
        for node in part.nodes:
            facts = [node.kind.lower(), *(f"reads {topic}" for topic in node.source_topics)]
            facts += [f"store {store}" for store in node.stores]
            facts += [f"writes {node.sink_topic}"] if node.sink_topic else []
            prose(f"{node.name} ({', '.join(facts)})", " " * 15, f"    {'node':<11}")
    if group.topology_description is None:
        remark("Brokers from 4.4 on report the graph inside the sub-topologies.", "  ")


def _lists(part: Subtopology) -> tuple[tuple[str, str], ...]:
    return (
        ("reads", ", ".join((*part.source_topics, *map(_internal, part.repartition_source_topics)))),
        ("writes to", ", ".join(part.repartition_sink_topics)),
        ("changelogs", ", ".join(map(_internal, part.changelog_topics))),
    )


def _internal(topic: InternalTopic) -> str:
    return f"{topic.name} ({topic.partitions})" if topic.partitions else topic.name


def _members(group: StreamsGroupView) -> None:
    heading("Processes" if group.processes else "No members")
    for process in group.processes:
        hosts = ", ".join(sorted({instance.host.lstrip("/") for instance in process.members}))
        where = f" on {hosts}" + (f", serves {process.endpoint}" if process.endpoint else "")
        print(f"  {paint(process.process_id, 'bold')}{where}")
        head = ("client", "member", "epoch", *ROLES, "")
        grid(head, [_row(instance, group) for instance in process.members], "epoch", "    ")
        for member in process.members:
            for offset in member.task_offsets:
                lag = "unknown" if offset.lag is None else f"{offset.lag:,}"
                remark(f"{offset.task}: state lag {lag}", "      ")


def _row(member: StreamsMember, group: StreamsGroupView) -> tuple[Content, ...]:
    remarks = []
    if member.classic:
        remarks.append("classic protocol")
    if group.topology_epoch is not None and member.topology_epoch != group.topology_epoch:
        remarks.append(f"topology {member.topology_epoch}")
    if member.instance_id:
        remarks.append(f"instance {member.instance_id}")
    return (
        # Kafka Streams adds it to each thread's name
        member.client_id.removesuffix("-consumer"),
        short(member.member_id),
        member.member_epoch,
        *(_tasks(member.assignment, member.target, role) for role in ROLES),
        ", ".join(remarks),
    )


def _tasks(have: Tasks, want: Tasks, role: str) -> Cell:
    """`0_1 -0_2 +0_3`: it has 0_1, and has yet to release 0_2 and take 0_3."""
    present, target = getattr(have, role), getattr(want, role)
    words = [task if task in target else f"-{task}" for task in present]
    words += [f"+{task}" for task in target if task not in present]
    text = " ".join(words)
    return odd(text) if present != target else Cell(text)
