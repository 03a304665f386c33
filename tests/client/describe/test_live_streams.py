"""`describe streams-group` agrees with Kafka's StreamsGroupCommand, field by field: stable, and while it waits."""

import re
from dataclasses import dataclass

import pytest

from kafkascope.client.describe.streams_group import describe_streams_group
from kafkascope.client.describe.streams_values import StreamsGroupView, Tasks
from kafkascope.errors import RefusedError
from lab.program import Program
from lab.stage import Stage
from lab.wire import until
from tests.client.describe.live import STREAMS, Tools, create_topics, produce, see, set_group

GROUP, TOPIC = "weavers", "threads"
TASKS = tuple(f"{part}_{partition}" for part in (0, 1) for partition in (0, 1))
SECONDS = 90.0
ROLES = ("active", "standby", "warmup")


def start(stage: Stage, who: str) -> Program:
    options = {"topic": TOPIC, "output": "cloth", "kafka.application.id": GROUP, "kafka.replication.factor": "1"}
    return stage.java("StreamsMember", who, {**options, "kafka.state.dir": str(stage.folder / f"state-{who}")})


@pytest.fixture(scope="module")
def first(stage: Stage) -> Program:
    where = stage.cluster.bootstrap
    create_topics(where, (TOPIC, 2, 1), ("cloth", 1, 1))
    # a member that is frozen shall not be given up while we look
    set_group(where, GROUP, streams_session_timeout_ms="45000")
    produce(where, TOPIC, 0, 5)
    program = start(stage, "weaver-1")
    program.wait_for("every task held", lambda event: set(event.get("active", ())) == set(TASKS))
    return program


def look(stage: Stage) -> StreamsGroupView:
    return see(stage.cluster.bootstrap, lambda cluster: describe_streams_group(cluster, GROUP))


def tasks_of(text: str, prefix: str = "") -> Tasks:
    """`ACTIVE: 0:[0,1]; 1:[0]; TARGET-ACTIVE: …` by role."""
    tasks = []
    for role in ROLES:
        part = re.search(rf"(?<![-\w]){prefix}{role.upper()}:\s*((?:\S+:\[[\d, ]*\];?\s*)*)", text)
        named = re.findall(r"(\S+):\[([\d, ]*)\]", part[1]) if part else []
        pairs = sorted((of, int(number)) for of, numbers in named for number in numbers.split(","))
        tasks.append(tuple(f"{of}_{number}" for of, number in pairs))
    return Tasks(*tasks)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What the tool printed: --state, --members and --offsets."""

    state: dict[str, str]
    members: list[str]
    offsets: list[dict[str, str]]


def assert_as_the_tool_has_it(stage: Stage, tools: Tools) -> StreamsGroupView:
    """Both around a moment in which nothing changed."""
    arguments = ("--describe", "--group", GROUP, "--verbose")

    def same() -> tuple[StreamsGroupView, ToolOutput] | None:
        before = look(stage)
        (state,) = tools.table(STREAMS, *arguments, "--state")
        _, *members = tools.run(STREAMS, *arguments, "--members")
        tool = ToolOutput(state, members, tools.table(STREAMS, *arguments, "--offsets") if before.inputs else [])
        return (before, tool) if look(stage) == before else None

    group, tool = until("a moment in which nothing changes", same, SECONDS)
    assert_same(group, tool)
    return group


def assert_same(group: StreamsGroupView, tool: ToolOutput) -> None:
    state, node = tool.state, group.coordinator
    assert node is not None
    assert (state["COORDINATOR"], state["ID"]) == (node.address, f"({node.node_id})")
    assert (state["STATE"], state["#MEMBERS"]) == (group.state, str(len(group.members)))
    assert state["GROUP-EPOCH"] == str(group.group_epoch)
    assert state["TARGET-ASSIGNMENT-EPOCH"] == str(group.assignment_epoch)
    rows = {line.split()[3]: line.split(maxsplit=8) for line in tool.members}
    assert rows.keys() == {member.member_id for member in group.members}
    for process in group.processes:
        for member in process.members:
            row = rows[member.member_id]
            assert row[1:3] == [str(group.assignment_epoch), str(group.topology_epoch)]
            assert row[4:8] == [
                "classic" if member.classic else "streams",
                str(member.member_epoch),
                process.process_id,
                member.client_id,
            ]
            cell = row[8] if len(row) > 8 else ""
            assert tasks_of(cell) == member.assignment, cell
            assert tasks_of(cell, "TARGET-") == member.target, cell
    offsets = {(offset["TOPIC"], int(offset["PARTITION"])): offset for offset in tool.offsets}
    assert offsets.keys() == {(source.topic, source.partition) for source in group.inputs}
    for part in group.inputs:
        told_of = offsets[part.topic, part.partition]
        assert told_of["CURRENT-OFFSET"] == ("-" if part.current_offset is None else str(part.current_offset))
        assert told_of["LEADER-EPOCH"] == ("-" if part.leader_epoch is None else str(part.leader_epoch))
        assert (told_of["LOG-END-OFFSET"], told_of["OFFSET-LAG"]) == (str(part.end_offset), str(part.lag))


def _settled(stage: Stage, lag: int) -> StreamsGroupView | None:
    group = look(stage)
    held = sorted(task for member in group.members for task in member.assignment.active)
    return group if group.state == "Stable" and held == sorted(TASKS) and group.lag == lag else None


def test_stable_group_is_as_kafkas_tool_has_it(stage: Stage, first: Program, tools: Tools) -> None:
    # nothing is committed for the partition without records, of which lag is end less first: none
    until("every task held and every record done", lambda: _settled(stage, 0), SECONDS)
    group = assert_as_the_tool_has_it(stage, tools)
    assert group.waits == () and group.statuses == () and group.gaps == ()
    (process,) = group.processes
    (member,) = process.members
    assert member.client_id.startswith(first.who) and member.assignment.active == TASKS
    assert [part.source_topics for part in group.subtopologies] == [(TOPIC,), ()]
    assert group.topology_epoch == 0 and group.topology_description is None


def test_rebalance_names_the_member_that_it_waits_for(stage: Stage, first: Program, tools: Tools) -> None:
    before = until("a stable group", lambda: _settled(stage, 0), SECONDS)
    second = start(stage, "weaver-2")
    second.wait_for_event("started")
    # it sends no heartbeat, so what it has to give up stays with it until its session ends
    first.process.freeze()
    try:

        def waiting() -> StreamsGroupView | None:
            group = look(stage)
            return group if len(group.members) == 2 and group.waits and group.state == "Reconciling" else None

        until("a rebalance that waits", waiting, SECONDS)
        group = assert_as_the_tool_has_it(stage, tools)
        assert group.group_epoch > before.group_epoch and group.state == "Reconciling"
        message = "; ".join(group.waits)
        assert "weaver-1" in message and "weaver-2" in message
        produce(stage.cluster.bootstrap, TOPIC, 1, 4)
    finally:
        first.process.thaw()
    until("both with tasks", lambda: _spread(stage), SECONDS)
    group = assert_as_the_tool_has_it(stage, tools)
    assert group.waits == () and len(group.processes) == 2
    second.close()


def _spread(stage: Stage) -> StreamsGroupView | None:
    group = _settled(stage, 0)
    return (
        group
        if group and len(group.members) == 2 and all(member.assignment.active for member in group.members)
        else None
    )


def test_topic_that_does_not_exist_is_a_status(stage: Stage) -> None:
    options = {"topic": "yarn", "output": "cloth", "kafka.application.id": "spinners"}
    spinner = stage.java("StreamsMember", "spinner", {**options, "kafka.state.dir": str(stage.folder / "state-spin")})
    where = stage.cluster.bootstrap

    def seen() -> StreamsGroupView | None:
        try:
            group = see(where, lambda cluster: describe_streams_group(cluster, "spinners"))
        except RefusedError:
            return None  # it has not joined yet
        return group if group.statuses else None

    group = until("a group that is not ready", seen, SECONDS)
    spinner.process.kill()
    assert group.state == "NotReady" and group.lag is None
    assert any(status.name == "MISSING_SOURCE_TOPICS" and "yarn" in status.detail for status in group.statuses)
    assert group.waits[0].startswith("the topology is not ready: MISSING_SOURCE_TOPICS")
