"""Lists of groups of every version become one list; filters are those of Kafka's states and types."""

import pytest

from kafkascope.client.describe.groups import (
    NOT_ASKED,
    check_states,
    filter_groups,
    listed_groups,
    may_describe,
    member_counts,
)
from kafkascope.client.describe.values import NodeAddress
from kafkascope.errors import UsageError
from tests.client.describe.recorded import answers

NODE = NodeAddress(1, "127.0.0.1:9092")


def test_listed_groups_have_the_type_and_state_that_the_version_tells() -> None:
    old, *new = answers("clients", 1, "ListGroups")
    if "groupType" in (old["groups"] or [{}])[0]:
        old, new = new[-1], [old]
    found = [one for value in (old, *new) for one in listed_groups(value, NODE)]
    assert {one.type for one in found} >= {"classic"}
    assert all(one.coordinator == NODE and one.members is None for one in found)


def test_group_of_a_broker_that_tells_no_type_is_classic_and_its_state_unknown() -> None:
    """ListGroups before version 4."""
    (found,) = listed_groups({"groups": [{"groupId": "g", "protocolType": "consumer"}]}, NODE)
    assert (found.type, found.state) == ("classic", None)


def test_filters_take_any_case() -> None:
    rows = [
        {"groupId": "a", "protocolType": "share", "groupState": "Stable", "groupType": "share"},
        {"groupId": "b", "protocolType": "", "groupState": "Empty", "groupType": "Classic"},
    ]
    found = listed_groups({"groups": rows}, NODE)
    assert [one.type for one in found] == ["share", "classic"]
    assert [one.group_id for one in filter_groups(found, ["SHARE"])] == ["a"]
    assert [one.group_id for one in filter_groups(found, (), ["empty"])] == ["b"]
    assert len(filter_groups(found)) == 2


def test_state_that_no_group_has_is_refused_with_a_suggestion() -> None:
    check_states(["stable", "NotReady"])
    with pytest.raises(UsageError, match="did you mean Empty"):
        check_states(["Emty"])


def test_group_that_may_not_be_described_is_a_gap_with_its_acl() -> None:
    rows = [
        {"groupId": "a", "errorCode": 0, "groupState": "Stable", "members": [{}, {}]},
        {"groupId": "b", "errorCode": 30, "errorMessage": None, "groupState": "", "members": []},
    ]
    found, gaps = member_counts({"groups": rows}, "ShareGroupDescribe")
    assert found == {"a": ("Stable", 2)}
    assert [(one.what, one.needs) for one in gaps] == [("members of b", "Describe on Group b")]


def test_authorized_operations_tell_whether_the_list_is_complete() -> None:
    assert may_describe(1 << 8) is True
    assert may_describe(0) is False
    assert may_describe(NOT_ASKED) is None
