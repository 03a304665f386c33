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
    listings = [listing for value in (old, *new) for listing in listed_groups(value, NODE)]
    assert {listing.type for listing in listings} >= {"classic"}
    assert all(listing.coordinator == NODE and listing.members is None for listing in listings)


def test_group_of_a_broker_that_tells_no_type_is_classic_and_its_state_unknown() -> None:
    """ListGroups before version 4."""
    (listing,) = listed_groups({"groups": [{"groupId": "g", "protocolType": "consumer"}]}, NODE)
    assert (listing.type, listing.state) == ("classic", None)


def test_filters_take_any_case() -> None:
    rows = [
        {"groupId": "a", "protocolType": "share", "groupState": "Stable", "groupType": "share"},
        {"groupId": "b", "protocolType": "", "groupState": "Empty", "groupType": "Classic"},
    ]
    listings = listed_groups({"groups": rows}, NODE)
    assert [listing.type for listing in listings] == ["share", "classic"]
    assert [listing.group_id for listing in filter_groups(listings, ["SHARE"])] == ["a"]
    assert [listing.group_id for listing in filter_groups(listings, (), ["empty"])] == ["b"]
    assert len(filter_groups(listings)) == 2


def test_state_that_no_group_has_is_refused_with_a_suggestion() -> None:
    check_states(["stable", "NotReady"])
    with pytest.raises(UsageError, match="did you mean Empty"):
        check_states(["Emty"])


def test_group_that_may_not_be_described_is_a_gap_with_its_acl() -> None:
    rows = [
        {"groupId": "a", "errorCode": 0, "groupState": "Stable", "members": [{}, {}]},
        {"groupId": "b", "errorCode": 30, "errorMessage": None, "groupState": "", "members": []},
    ]
    counts, gaps = member_counts({"groups": rows}, "ShareGroupDescribe")
    assert counts == {"a": ("Stable", 2)}
    assert [(gap.what, gap.needs) for gap in gaps] == [("members of b", "Describe on Group b")]


def test_authorized_operations_tell_whether_the_list_is_complete() -> None:
    assert may_describe(1 << 8) is True
    assert may_describe(0) is False
    assert may_describe(NOT_ASKED) is None
