"""Classic and consumer groups: what members have is read from either answer, lag is end less committed."""

from typing import Any

import kafkascope
from kafkascope.client.describe.committed import committed_offsets
from kafkascope.client.describe.group import group_of
from kafkascope.client.describe.offsets import Offset
from kafkascope.client.describe.values import TopicAssignment
from tests.client.describe.recorded import answers

ENDS = {("orders", 0): Offset(50, 1), ("orders", 1): Offset(60, 1)}


def classic(protocol: str = "consumer", version: int = 1) -> dict[str, Any]:
    subscription = kafkascope.encode("ConsumerProtocolSubscription", 1, {"topics": ["orders"]})
    assignment = kafkascope.encode(
        "ConsumerProtocolAssignment", 1, {"assignedPartitions": [{"topic": "orders", "partitions": [1, 0]}]}
    )
    member = {
        "memberId": "app-1",
        "groupInstanceId": None,
        "clientId": "app",
        "clientHost": "/127.0.0.1",
        "memberMetadata": version.to_bytes(2) + subscription,
        "memberAssignment": version.to_bytes(2) + assignment,
    }
    return {
        "errorCode": 0,
        "groupId": "readers",
        "groupState": "Stable",
        "protocolType": protocol,
        "protocolData": "range",
        "members": [member],
    }


def test_classic_members_subscription_and_assignment_are_read_from_their_bytes() -> None:
    group = group_of(classic(), {("orders", 0): Offset(45, 1)}, ENDS)
    (member,) = group.members
    assert (group.type, group.assignor, group.group_epoch) == ("classic", "range", None)
    assert member.subscriptions == ("orders",)
    assert member.assignment == (TopicAssignment("orders", (0, 1)),)


def test_bytes_of_a_newer_consumer_protocol_are_read_as_far_as_they_are_known() -> None:
    (member,) = group_of(classic(version=9), {}, {}).members
    assert member.assignment == (TopicAssignment("orders", (0, 1)),)


def test_bytes_of_another_protocol_are_left_alone() -> None:
    (member,) = group_of(classic("connect"), {}, {}).members
    assert (member.subscriptions, member.assignment) == (None, ())


def test_broken_bytes_of_a_member_do_not_hide_the_group() -> None:
    group = classic()
    group["members"][0]["memberAssignment"] = b"\x00\x01\x00\x00\x7f\xff"
    (member,) = group_of(group, {}, {}).members
    assert member.assignment == () and member.subscriptions == ("orders",)


def test_partition_without_a_committed_offset_has_no_lag_and_is_not_counted() -> None:
    group = group_of(classic(), {("orders", 0): Offset(45, 1)}, ENDS)
    assert [
        (partition.partition, partition.current_offset, partition.end_offset, partition.lag, partition.member)
        for partition in group.partitions
    ] == [
        (0, 45, 50, 5, "app-1"),
        (1, None, 60, None, "app-1"),
    ]
    assert group.lag == 5


def test_lag_in_all_is_unknown_where_an_end_is() -> None:
    assert group_of(classic(), {("orders", 0): Offset(45, 1), ("gone", 0): Offset(1, 1)}, ENDS).lag is None


def test_consumer_group_has_epochs_and_targets() -> None:
    (value,) = (
        response
        for response in answers("clients", 1, "ConsumerGroupDescribe")
        if not response["groups"][0]["errorCode"]
    )
    group = group_of(value["groups"][0], {}, {})
    assert group.type == "consumer" and group.group_epoch is not None and group.assignor
    assert all(member.target is not None and member.member_epoch is not None for member in group.members)


def test_committed_offsets_are_read_in_both_layouts() -> None:
    row = {"partitionIndex": 0, "committedOffset": 7, "errorCode": 0}
    none = {"partitionIndex": 1, "committedOffset": -1, "errorCode": 0}
    wrong = {"partitionIndex": 2, "committedOffset": -1, "errorCode": 29}
    part = {"topics": [{"name": "orders", "partitions": [row, none, wrong]}], "errorCode": 0}
    expected = ({("orders", 0): Offset(7, None)}, 0, [(("orders", 2), 29)])
    assert committed_offsets(part) == expected
    assert committed_offsets({"groups": [{"groupId": "g", **part}]}) == expected


def test_recorded_offset_fetches_are_read() -> None:
    responses = [value for value in answers("clients", 1, "OffsetFetch") if "groups" not in value or value["groups"]]
    names = [value for value in responses if all("name" in topic for topic in _topics(value))]
    assert len(names) >= 10 and all(committed_offsets(value)[1] == 0 for value in names if _code(value) == 0)


def _part(value: Any) -> Any:
    return value["groups"][0] if "groups" in value else value


def _topics(value: Any) -> Any:
    return _part(value)["topics"]


def _code(value: Any) -> int:
    return int(_part(value).get("errorCode", 1))
