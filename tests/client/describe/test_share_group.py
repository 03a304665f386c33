"""Answers about a recorded share group become views; standing still takes two looks."""

from collections.abc import Mapping
from typing import Any

from kafkascope.client.describe.gaps import error_gap
from kafkascope.client.describe.offsets import Offset
from kafkascope.client.describe.share_group import ShareGroupView, SharePartition, mark_stalled, share_group_of
from kafkascope.client.describe.values import TopicAssignment
from tests.client.describe.recorded import answers


def groups(api: str) -> list[Mapping[str, Any]]:
    return [value["groups"][0] for value in answers("share", 1, api) if not value["groups"][0]["errorCode"]]


def busiest() -> ShareGroupView:
    """Five members, and lag left in one of three partitions."""
    group = max(groups("ShareGroupDescribe"), key=lambda described: len(described["members"]))
    offsets = next(
        described
        for described in groups("DescribeShareGroupOffsets")
        if {part["lag"] for topic in described["topics"] for part in topic["partitions"]} == {0, 1}
    )
    ends = {("orders", 0): Offset(98, 0), ("payments", 0): Offset(4, 0), ("payments", 1): Offset(4, 0)}
    return share_group_of(group, offsets, ends)


def test_members_have_subscriptions_and_assignments_by_topic() -> None:
    group = busiest()
    assert group.state == "Stable" and group.assignor == "simple"
    assert [member.client_id for member in group.members] == ["doomed", "hung", "leaver", "renewer", "steady"]
    steady = group.members[-1]
    assert steady.subscriptions == ("orders", "payments")
    assert steady.assignment == (TopicAssignment("orders", (0,)), TopicAssignment("payments", (0, 1)))


def test_partition_has_start_end_and_the_lag_that_the_broker_reckons() -> None:
    group = busiest()
    orders = group.partitions[0]
    # 97 of the 98 records are done with, though none before the first one: end less start is not the lag
    assert (orders.start_offset, orders.end_offset, orders.lag) == (0, 98, 1)
    assert len(orders.members) == 5
    assert group.lag == 1


def test_partition_that_was_not_read_yet_has_no_lag() -> None:
    offsets = next(described for described in groups("DescribeShareGroupOffsets") if described["topics"])
    group = share_group_of(groups("ShareGroupDescribe")[0], offsets, {})
    assert [(partition.start_offset, partition.lag) for partition in group.partitions] == [(None, None)]
    assert group.lag is None


def test_lag_without_a_start_is_unknown_whatever_is_said() -> None:
    part = {"partitionIndex": 0, "startOffset": -1, "leaderEpoch": 0, "lag": 0, "errorCode": 0, "errorMessage": None}
    offsets = {"topics": [{"topicName": "orders", "partitions": [part]}]}
    assert share_group_of(groups("ShareGroupDescribe")[0], offsets, {}).partitions[0].lag is None


def test_lag_of_brokers_that_do_not_tell_it_is_unknown() -> None:
    """DescribeShareGroupOffsets version 0, of 4.1, has no lag."""
    offsets = {
        "topics": [
            {
                "topicName": "orders",
                "partitions": [
                    {"partitionIndex": 0, "startOffset": 7, "leaderEpoch": 0, "errorCode": 0, "errorMessage": None}
                ],
            }
        ]
    }
    group = share_group_of(groups("ShareGroupDescribe")[0], offsets, {("orders", 0): Offset(9, 0)})
    assert [(partition.start_offset, partition.end_offset, partition.lag) for partition in group.partitions] == [
        (7, 9, None)
    ]
    assert group.lag is None


def test_partition_that_may_not_be_seen_is_a_gap_with_its_acl() -> None:
    offsets = {
        "topics": [
            {
                "topicName": "secret",
                "partitions": [
                    {"partitionIndex": 0, "startOffset": -1, "leaderEpoch": 0, "errorCode": 29, "errorMessage": None}
                ],
            }
        ]
    }
    group = share_group_of(groups("ShareGroupDescribe")[0], offsets, {})
    assert [(gap.what, gap.needs) for gap in group.gaps] == [("offsets of secret-0", "Describe on Topic secret")]


def view_of(start: int | None, end: int | None, lag: int | None) -> ShareGroupView:
    part = SharePartition("orders", 0, 0, start, end, lag, ())
    return ShareGroupView("g", "Stable", None, 1, 1, "simple", lag, (), (part,), (), ())


def still(before: ShareGroupView, now: ShareGroupView) -> bool | None:
    return mark_stalled(before, now).partitions[0].standing_still


def test_partition_with_lag_and_no_progress_stands_still() -> None:
    assert still(view_of(5, 20, 15), view_of(5, 20, 15)) is True
    # records came, none was done with
    assert still(view_of(5, 20, 15), view_of(5, 30, 25)) is True


def test_partition_moves_when_any_record_is_done_with() -> None:
    assert still(view_of(5, 20, 15), view_of(6, 20, 14)) is False
    # one behind the first was acknowledged: the start stays, the lag shrinks
    assert still(view_of(5, 20, 15), view_of(5, 20, 14)) is False
    # as many came as were done with
    assert still(view_of(5, 20, 15), view_of(5, 22, 15)) is False


def test_partition_without_lag_does_not_stand_still() -> None:
    assert still(view_of(20, 20, 0), view_of(20, 20, 0)) is False


def test_standing_still_is_unknown_without_lag_or_a_second_look() -> None:
    assert view_of(5, 20, 15).partitions[0].standing_still is None
    assert still(view_of(5, 20, None), view_of(5, 20, None)) is None
    assert still(view_of(None, 20, None), view_of(None, 20, None)) is None


def test_gap_of_topics_that_are_not_named_says_each_one() -> None:
    lack = error_gap("share group g", "ShareGroupDescribe", 29)
    assert lack.needs == "Describe on Topic, each one it is about"
