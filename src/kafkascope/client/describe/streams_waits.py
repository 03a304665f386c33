"""Explains in sentences what the rebalance of a streams group waits for."""

from collections.abc import Iterable, Mapping
from typing import Any

from kafkascope.client.describe.streams_values import StreamsMember, Subtopology, Tasks, TopologyStatus

ROLES = ("active", "standby", "warmup")


def tasks_of(assignment: Mapping[str, Any]) -> Tasks:
    """Tasks of an assignment in a response."""
    named = {
        role: sorted(
            (row["subtopologyId"], partition) for row in assignment[f"{role}Tasks"] for partition in row["partitions"]
        )
        for role in ROLES
    }
    return Tasks(*(tuple(f"{subtopology}_{partition}" for subtopology, partition in named[role]) for role in ROLES))


def waits_of(
    state: str,
    group_epoch: int,
    assignment_epoch: int,
    members: Iterable[StreamsMember],
    statuses: Iterable[TopologyStatus],
) -> tuple[str, ...]:
    """Empty if the current tasks are the target and every member is at the epoch of the assignment."""
    everyone = list(members)
    sentences: list[str] = []
    if state == "NotReady":
        reasons = [status.name for status in statuses]
        sentences.append("the topology is not ready" + (f": {', '.join(reasons)}" if reasons else ""))
    if everyone and assignment_epoch < group_epoch:
        sentences.append(
            f"the coordinator has not assigned epoch {group_epoch} yet; the assignment is of {assignment_epoch}"
        )
    holders = {task: member for member in everyone for task in member.assignment.active}
    late = [member for member in everyone if member.member_epoch < assignment_epoch]
    for member in everyone:
        late_others = [other for other in late if other.member_id != member.member_id]
        sentences += _member_waits(member, assignment_epoch, holders, late_others)
    return tuple(sentences)


def _member_waits(
    member: StreamsMember, assignment_epoch: int, holders: Mapping[str, StreamsMember], late: list[StreamsMember]
) -> list[str]:
    """A task that a member has to release is no longer in its assignment, though the member may hold it until it
    confirms; until then its epoch is older."""
    name = _member_name(member)
    sentences = []
    extra = _surplus_text(member.assignment, member.target)
    if extra:
        sentences.append(f"{name} has yet to release {extra}")
    for task in member.target.active:
        holder = holders.get(task)
        if holder is not None and holder.member_id != member.member_id:
            sentences.append(f"{name} waits for {_member_name(holder)} to release active {task}")
    free = [task for task in member.target.active if task not in holders]
    if free and late:
        owners = ", ".join(f"{_member_name(other)} at epoch {other.member_epoch}" for other in late)
        sentences.append(f"{name} waits for active {', '.join(free)}, until {owners} confirms the release")
    elif free:
        sentences.append(f"{name} has yet to take active {', '.join(free)} with its next heartbeat")
    copies = Tasks(
        (),
        *(
            tuple(task for task in getattr(member.target, role) if task not in getattr(member.assignment, role))
            for role in ROLES[1:]
        ),
    )
    taken = _tasks_text(copies)
    if taken:
        sentences.append(f"{name} has yet to take {taken} with its next heartbeat")
    if not sentences and member.member_epoch < assignment_epoch:
        sentences.append(
            f"{name} is at epoch {member.member_epoch}, the assignment at {assignment_epoch}: its heartbeat is due"
        )
    return sentences


def _surplus_text(assigned: Tasks, target: Tasks) -> str:
    kept = {role: set(getattr(target, role)) for role in ROLES}
    return _tasks_text(
        Tasks(*(tuple(task for task in getattr(assigned, role) if task not in kept[role]) for role in ROLES))
    )


def _tasks_text(tasks: Tasks) -> str:
    return ", ".join(f"{role} {', '.join(getattr(tasks, role))}" for role in ROLES if getattr(tasks, role))


def _member_name(member: StreamsMember) -> str:
    """Short enough for a sentence, and distinct from other threads of the same client."""
    return f"{member.client_id.removesuffix('-consumer')} ({member.member_id[:8]})"


def statuses_of(
    subtopologies: Iterable[Subtopology],
    topology_epoch: int | None,
    members: Iterable[StreamsMember],
    topics: Mapping[str, int] | None,
) -> tuple[TopologyStatus, ...]:
    """`topics` are existing topics with their number of partitions; None if unknown."""
    statuses: list[TopologyStatus] = []
    parts = list(subtopologies)
    stale = [member for member in members if topology_epoch is not None and member.topology_epoch < topology_epoch]
    if stale:
        names = ", ".join(f"{_member_name(member)} at {member.topology_epoch}" for member in stale)
        statuses.append(TopologyStatus("STALE_TOPOLOGY", f"the group's topology has epoch {topology_epoch}: {names}"))
    if topics is None:
        return tuple(statuses)
    missing = sorted({name for part in parts for name in part.source_topics if name not in topics})
    if missing:
        statuses.append(TopologyStatus("MISSING_SOURCE_TOPICS", f"missing topics: {', '.join(missing)}"))
    internal = [topic for part in parts for topic in (*part.repartition_source_topics, *part.changelog_topics)]
    absent = sorted({topic.name for topic in internal if topic.name not in topics})
    if absent:
        statuses.append(TopologyStatus("MISSING_INTERNAL_TOPICS", f"missing topics: {', '.join(absent)}"))
    wrong = [
        f"{topic.name} has {topics[topic.name]} partitions, but needs {topic.partitions}"
        for topic in internal
        if topic.name in topics and topic.partitions and topics[topic.name] != topic.partitions
    ]
    if wrong:
        statuses.append(TopologyStatus("INCORRECTLY_PARTITIONED_TOPICS", "; ".join(sorted(wrong))))
    return tuple(statuses)
