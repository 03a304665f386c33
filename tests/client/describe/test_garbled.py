"""A node that sends bytes that are no response costs its own part of a view: the other nodes' part is shown."""

from typing import Any

import pytest

from kafkascope.cli.describe.run_view import describe_several
from kafkascope.client import Cluster
from kafkascope.client.check.run import GROUP, check_cluster
from kafkascope.client.check.verdicts import CheckLimits
from kafkascope.client.describe.configs import describe_configs
from kafkascope.client.describe.gaps import NO_ANSWER
from kafkascope.client.describe.group import describe_group
from kafkascope.client.describe.groups import GroupList, describe_groups
from kafkascope.client.describe.topic import describe_topic
from kafkascope.client.writes import has_topic
from kafkascope.codec.frame import DecodedFrame
from kafkascope.errors import DecodeError, RefusedError
from tests.client.describe.two_nodes import Two, with_two
from tests.client.stage import Stage, play

PATIENCE = 60.0


def garbled(*places: tuple[int, str]) -> Two:
    script = Two()
    script.garbage = set(places)
    script.listed = [{"groupId": name, "protocolType": "", "groupType": "classic"} for name in ("near", "far")]
    return script


def test_groups_of_other_nodes_are_listed_with_a_line_for_the_node_that_failed() -> None:
    listing: GroupList = with_two(garbled((2, "*")), describe_groups, timeout=PATIENCE)
    assert [group.group_id for group in listing.groups] == ["far", "near"]
    (lack,) = listing.gaps
    assert (lack.what, lack.error, lack.code) == ("groups of node 2", NO_ANSWER, None)
    assert lack.detail is not None and lack.detail.startswith("ListGroups v5 at ")


def test_where_every_node_sends_garbage_it_is_bad_input() -> None:
    with pytest.raises(DecodeError, match="ListGroups v5 at"):
        with_two(garbled((1, "ListGroups"), (2, "ListGroups")), describe_groups, timeout=PATIENCE)


def test_members_that_cannot_be_read_leave_the_list() -> None:
    listing = with_two(garbled((1, "DescribeGroups")), describe_groups, timeout=PATIENCE)
    assert [group.members for group in listing.groups] == [None, None]
    assert [gap.what for gap in listing.gaps] == ["members of classic groups of node 1"]


def test_offsets_and_configs_that_cannot_be_read_leave_the_rest() -> None:
    topic = with_two(garbled((2, "ListOffsets")), lambda cluster: describe_topic(cluster, "orders"), timeout=PATIENCE)
    assert [partition.end_offset for partition in topic.partitions] == [10, None]
    group = with_two(garbled((1, "OffsetFetch")), lambda cluster: describe_group(cluster, "g"), timeout=PATIENCE)
    assert (group.state, [gap.what for gap in group.gaps]) == ("Empty", ["committed offsets"])
    configs = with_two(garbled((2, "*")), lambda cluster: describe_configs(cluster, ()), timeout=PATIENCE)
    assert [(resource.name, [lack.error for lack in resource.gaps]) for resource in configs] == [
        ("1", []),
        ("2", [NO_ANSWER]),
    ]


def test_a_group_that_cannot_be_read_does_not_hide_another() -> None:
    script = garbled((2, "ConsumerGroupDescribe"))
    groups, refused = with_two(
        script,
        lambda cluster: describe_several(("near", "far"), lambda name: describe_group(cluster, name)),
        timeout=PATIENCE,
    )
    assert [group.group_id for group in groups] == ["near"]
    assert len(refused) == 1 and refused[0].startswith("far: ConsumerGroupDescribe")
    report = with_two(script, lambda cluster: check_cluster(cluster, (GROUP,), (), CheckLimits()), timeout=PATIENCE)
    assert [(result.subject, result.problems[0].rule) for result in report.results][1:] == [
        ("group far", "not_described")
    ]
    assert report.results[0].subject == "group near"


def test_a_response_without_what_was_asked_for_is_one_line() -> None:
    async def use(cluster: Cluster, _: Stage) -> None:
        assert not await has_topic(cluster, "__consumer_offsets")
        with pytest.raises(RefusedError, match="group g: the response has no coordinator"):
            await describe_group(cluster, "g")

    def script(_: int, request: DecodedFrame) -> dict[str, Any] | None:
        if request.api == "FindCoordinator":
            return {"coordinators": []}
        return {"topics": [], "brokers": []} if request.api == "Metadata" else None

    play(script, use)
