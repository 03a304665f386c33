"""`describe share-group` agrees with Kafka's ShareGroupCommand, field by field: busy, with a hung member, and empty."""

import asyncio
from dataclasses import dataclass

import pytest

from kafkascope.client import Cluster as Client
from kafkascope.client.describe.share_group import ShareGroupView, describe_share_group, mark_stalled
from kafkascope.errors import RefusedError
from lab.program import Program
from lab.stage import Stage
from lab.wire import until
from tests.client.describe.live import SHARE, Tools, create_topics, produce, see, set_group

GROUP, TOPIC = "packers", "parcels"
SECONDS = 60.0


@pytest.fixture(scope="module")
def member(stage: Stage) -> Program:
    """It takes its third record, and hangs with it."""
    where = stage.cluster.bootstrap
    create_topics(where, (TOPIC, 2, 3), ("labels", 1, 1))
    set_group(where, GROUP, share_auto_offset_reset="earliest")
    options = {"topic": f"{TOPIC},labels", "kafka.group.id": GROUP, "rules": "n3=hang:120000", "commit": "sync"}
    few = {"kafka.max.poll.records": "1", "kafka.share.acquire.mode": "record_limit"}
    program = stage.java("ShareMember", "packer", {**options, **few})
    produce(where, TOPIC, 0, 2)
    program.wait_for("two records taken", lambda event: event["event"] == "committed")
    return program


def look(stage: Stage) -> ShareGroupView:
    return see(stage.cluster.bootstrap, lambda cluster: describe_share_group(cluster, GROUP))


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What the tool printed: --state, --members and --offsets."""

    state: dict[str, str]
    members: list[dict[str, str]]
    offsets: list[dict[str, str]]


def assert_as_the_tool_has_it(stage: Stage, tools: Tools) -> ShareGroupView:
    """Both around a moment in which nothing changed."""
    arguments = ("--describe", "--group", GROUP, "--verbose")

    def same() -> tuple[ShareGroupView, ToolOutput] | None:
        before = look(stage)
        (state,) = tools.table(SHARE, *arguments, "--state")
        members = tools.table(SHARE, *arguments, "--members") if before.members else []
        tool = ToolOutput(state, members, tools.table(SHARE, *arguments, "--offsets"))
        return (before, tool) if look(stage) == before else None

    group, tool = until("a moment in which nothing changes", same, SECONDS)
    assert_same(group, tool)
    return group


def assert_same(group: ShareGroupView, tool: ToolOutput) -> None:
    state, node = tool.state, group.coordinator
    assert node is not None
    assert (state["COORDINATOR"], state["ID"]) == (node.address, f"({node.node_id})")
    assert state["STATE"] == group.state
    assert (state["GROUP-EPOCH"], state["ASSIGNMENT-EPOCH"]) == (str(group.group_epoch), str(group.assignment_epoch))
    assert state["#MEMBERS"] == str(len(group.members))
    rows = {row["CONSUMER-ID"]: row for row in tool.members}
    assert rows.keys() == {listed.member_id for listed in group.members}
    for listed in group.members:
        row = rows[listed.member_id]
        assert (row["HOST"], row["CLIENT-ID"]) == (listed.host, listed.client_id)
        assert row["MEMBER-EPOCH"] == str(listed.member_epoch)
        assert int(row["#PARTITIONS"]) == sum(len(some.partitions) for some in listed.assignment)
        assert row["ASSIGNMENT"] == ";".join(
            f"{some.topic}:{','.join(map(str, some.partitions))}" for some in listed.assignment
        )
    offsets = {(row["TOPIC"], int(row["PARTITION"])): row for row in tool.offsets}
    assert offsets.keys() == {(partition.topic, partition.partition) for partition in group.partitions}
    for part in group.partitions:
        row = offsets[part.topic, part.partition]
        assert row["START-OFFSET"] == ("-" if part.start_offset is None else str(part.start_offset))
        assert row["LAG"] == ("-" if part.lag is None else str(part.lag))
        if part.start_offset is not None:
            assert row["LEADER-EPOCH"] == ("-" if part.leader_epoch is None else str(part.leader_epoch))


def test_group_whose_member_keeps_up_is_as_kafkas_tool_has_it(stage: Stage, member: Program, tools: Tools) -> None:
    until("no lag", lambda: _without_lag(look(stage)), SECONDS)
    group = assert_as_the_tool_has_it(stage, tools)
    (listed,) = group.members
    assert (listed.client_id, listed.subscriptions) == (member.who, ("labels", TOPIC))
    assert group.state == "Stable" and group.gaps == ()
    settings = {setting.name: (setting.value, setting.source) for setting in group.settings}
    assert settings["share.auto.offset.reset"] == ("earliest", "group")
    assert settings["share.record.lock.duration.ms"][0] == "3000"


def _without_lag(group: ShareGroupView) -> ShareGroupView | None:
    read = {(partition.topic, partition.partition): partition for partition in group.partitions}.get((TOPIC, 0))
    return group if read is not None and read.start_offset is not None and group.lag == 0 else None


def test_hung_member_makes_its_partition_stand_still(stage: Stage, member: Program, tools: Tools) -> None:
    produce(stage.cluster.bootstrap, TOPIC, 0, 7)
    member.wait_for_event("hanging")

    async def twice(cluster: Client) -> ShareGroupView:
        before = await describe_share_group(cluster, GROUP)
        await asyncio.sleep(1)
        return mark_stalled(before, await describe_share_group(cluster, GROUP))

    group = see(stage.cluster.bootstrap, twice)
    assert group.standing_still == (f"{TOPIC}-0",)
    part = next(partition for partition in group.partitions if (partition.topic, partition.partition) == (TOPIC, 0))
    assert (part.end_offset, part.lag) == (9, 7)
    assert part.members == tuple(listed.member_id for listed in group.members)
    assert_as_the_tool_has_it(stage, tools)


def test_group_without_members_is_empty_in_both(stage: Stage, member: Program, tools: Tools) -> None:
    member.process.kill()

    def empty() -> ShareGroupView | None:
        group = look(stage)
        return group if group.state == "Empty" else None

    until("an empty group", empty, SECONDS)
    group = assert_as_the_tool_has_it(stage, tools)
    assert group.members == () and group.lag == 7


def test_group_that_is_not_there_is_refused(stage: Stage) -> None:
    with pytest.raises(RefusedError, match=r"GROUP_ID_NOT_FOUND \(69\)"):
        see(stage.cluster.bootstrap, lambda cluster: describe_share_group(cluster, "nobody"))
