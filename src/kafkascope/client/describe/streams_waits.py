"""A streams group's epochs and assignments in, sentences out that say what its rebalance still waits for."""

from collections.abc import Iterable, Mapping
from typing import Any

from kafkascope.client.describe.streams_values import Status, StreamsMember, Subtopology, Tasks

ROLES = ("active", "standby", "warmup")


def tasks_of(assignment: Mapping[str, Any]) -> Tasks:
    """From an assignment of an answer."""
    named = {
        role: sorted(
            (row["subtopologyId"], partition) for row in assignment[f"{role}Tasks"] for partition in row["partitions"]
        )
        for role in ROLES
    }
    return Tasks(*(tuple(f"{of}_{partition}" for of, partition in named[role]) for role in ROLES))


def waits_of(
    state: str, group_epoch: int, assignment_epoch: int, members: Iterable[StreamsMember], statuses: Iterable[Status]
) -> tuple[str, ...]:
    """Nothing where present and target are the same and everybody is at the epoch of the assignment."""
    everyone = list(members)
    said: list[str] = []
    if state == "NotReady":
        reasons = [one.name for one in statuses]
        said.append("the topology is not ready" + (f": {', '.join(reasons)}" if reasons else ""))
    if everyone and assignment_epoch < group_epoch:
        said.append(
            f"the coordinator has not assigned epoch {group_epoch} yet; the assignment is of {assignment_epoch}"
        )
    holders = {task: one for one in everyone for task in one.assignment.active}
    late = [one for one in everyone if one.member_epoch < assignment_epoch]
    for member in everyone:
        others = [one for one in late if one.member_id != member.member_id]
        said += _of_member(member, assignment_epoch, holders, others)
    return tuple(said)


def _of_member(
    member: StreamsMember, assignment_epoch: int, holders: Mapping[str, StreamsMember], late: list[StreamsMember]
) -> list[str]:
    """A task that a member was told to give up is in its assignment no more, though it may hold it until it says so:
    its epoch stays behind until then."""
    name = member_name(member)
    said = []
    extra = _difference(member.assignment, member.target)
    if extra:
        said.append(f"{name} has yet to give up {extra}")
    for task in member.target.active:
        holder = holders.get(task)
        if holder is not None and holder.member_id != member.member_id:
            said.append(f"{name} waits for {member_name(holder)} to give up active {task}")
    free = [task for task in member.target.active if task not in holders]
    if free and late:
        owners = ", ".join(f"{member_name(one)} at epoch {one.member_epoch}" for one in late)
        said.append(f"{name} waits for active {', '.join(free)}, until {owners} confirms what it gave up")
    elif free:
        said.append(f"{name} has yet to take active {', '.join(free)} with its next heartbeat")
    copies = Tasks(
        (),
        *(
            tuple(task for task in getattr(member.target, role) if task not in getattr(member.assignment, role))
            for role in ROLES[1:]
        ),
    )
    taken = _words(copies)
    if taken:
        said.append(f"{name} has yet to take {taken} with its next heartbeat")
    if not said and member.member_epoch < assignment_epoch:
        said.append(
            f"{name} is at epoch {member.member_epoch}, the assignment at {assignment_epoch}: its heartbeat is due"
        )
    return said


def _difference(have: Tasks, want: Tasks) -> str:
    kept = {role: set(getattr(want, role)) for role in ROLES}
    return _words(Tasks(*(tuple(task for task in getattr(have, role) if task not in kept[role]) for role in ROLES)))


def _words(tasks: Tasks) -> str:
    return ", ".join(f"{role} {', '.join(getattr(tasks, role))}" for role in ROLES if getattr(tasks, role))


def member_name(member: StreamsMember) -> str:
    """Short enough for a sentence, and told apart from another thread of the same client."""
    return f"{member.client_id.removesuffix('-consumer')} ({member.member_id[:8]})"


def statuses_of(
    subtopologies: Iterable[Subtopology],
    topology_epoch: int | None,
    members: Iterable[StreamsMember],
    topics: Mapping[str, int] | None,
) -> tuple[Status, ...]:
    """`topics` are those that exist, with their number of partitions; None where that could not be asked."""
    found: list[Status] = []
    parts = list(subtopologies)
    stale = [one for one in members if topology_epoch is not None and one.topology_epoch < topology_epoch]
    if stale:
        names = ", ".join(f"{member_name(one)} at {one.topology_epoch}" for one in stale)
        found.append(Status("STALE_TOPOLOGY", f"the group's topology is of epoch {topology_epoch}: {names}"))
    if topics is None:
        return tuple(found)
    missing = sorted({name for part in parts for name in part.source_topics if name not in topics})
    if missing:
        found.append(Status("MISSING_SOURCE_TOPICS", f"no such topics: {', '.join(missing)}"))
    internal = [one for part in parts for one in (*part.repartition_source_topics, *part.changelog_topics)]
    absent = sorted({one.name for one in internal if one.name not in topics})
    if absent:
        found.append(Status("MISSING_INTERNAL_TOPICS", f"no such topics: {', '.join(absent)}"))
    wrong = [
        f"{one.name} has {topics[one.name]} partitions, {one.partitions} wanted"
        for one in internal
        if one.name in topics and one.partitions and topics[one.name] != one.partitions
    ]
    if wrong:
        found.append(Status("INCORRECTLY_PARTITIONED_TOPICS", "; ".join(sorted(wrong))))
    return tuple(found)
