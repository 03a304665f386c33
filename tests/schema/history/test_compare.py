"""Two layouts or two releases in, what changed out: nothing is missed, nothing is made up."""

from itertools import pairwise

import pytest

from kafkascope.schema.catalog import index, message
from kafkascope.schema.history.compare import Change, compare_layouts, compare_releases, versions_in
from kafkascope.schema.layouts.layout import LayoutField, layout
from tests.support.pairs import every_pair


def changes(name: str, old: int, new: int, *releases: str | None) -> list[Change]:
    before, after = releases or (None, None)
    return compare_layouts(layout(name, old, before), layout(name, new, after))


def wire(fields: tuple[LayoutField, ...]) -> object:
    """What decides over the bytes, written down without the code under test."""
    return tuple((f.type, f.array, f.nullable, f.tag, f.default, f.compact, wire(f.fields)) for f in fields)


def test_fields_that_a_version_adds() -> None:
    assert changes("ShareFetchRequest", 1, 2) == [
        Change("added", "ShareAcquireMode", None, "int8"),
        Change("added", "IsRenewAck", None, "bool"),
    ]


def test_going_back_removes_what_going_forth_adds() -> None:
    forth, back = changes("DescribeQuorumResponse", 1, 2), changes("DescribeQuorumResponse", 2, 1)
    added = {c.path for c in forth if c.what == "added"}
    assert added == {c.path for c in back if c.what == "removed"} != set()


def test_a_nested_field_goes_by_its_path() -> None:
    assert Change("removed", "Topics.Partitions.PartitionMaxBytes", "int32", None) in changes("ShareFetchRequest", 0, 1)


def test_a_new_container_is_one_change_and_not_one_for_each_field_inside() -> None:
    added = [change.path for change in changes("DescribeQuorumResponse", 1, 2) if change.path.startswith("Nodes")]
    assert added == ["Nodes"]


def test_the_first_flexible_version_changes_the_encoding() -> None:
    assert changes("HeartbeatRequest", 3, 4) == [Change("encoding", "", "classic", "flexible")]


def test_null_that_becomes_possible_is_a_change() -> None:
    # Metadata v0: an empty list means all topics; since v1 null does
    assert Change("nullable", "Topics", "not nullable", "nullable") in changes("MetadataRequest", 0, 1)


def test_a_name_that_only_an_older_release_uses_is_a_renaming() -> None:
    differences = changes("StreamsGroupHeartbeatResponse", 0, 0, "4.3", "4.4")
    assert differences == [
        Change("renamed", "AcceptableRecoveryLagLegacy", "AcceptableRecoveryLag", "AcceptableRecoveryLagLegacy")
    ]


def test_an_old_name_taken_over_by_another_field_is_no_renaming() -> None:
    # v1 has an int64 under the name that 4.3 gave v0's int32
    differences = changes("StreamsGroupHeartbeatResponse", 0, 1)
    assert Change("removed", "AcceptableRecoveryLagLegacy", "int32", None) in differences
    assert Change("added", "AcceptableRecoveryLag", None, "int64") in differences


def test_two_layouts_under_one_version_number_differ() -> None:
    differences = changes("ReadShareGroupStateSummaryResponse", 0, 0, "3.9", "4.1")
    assert [(c.what, c.path) for c in differences] == [("added", "Results.Partitions.LeaderEpoch")]


def test_no_version_differs_from_itself() -> None:
    assert [(name, v) for name, v in every_pair() if changes(name, v, v)] == []


def test_neighbouring_versions_are_alike_exactly_where_their_bytes_are() -> None:
    wrong = []
    for name in index():
        versions = message(name).all_versions()
        for old, new in pairwise(versions):
            before, after = layout(name, old), layout(name, new)
            same = (before.flexible, wire(before.fields)) == (after.flexible, wire(after.fields))
            if same is not (not compare_layouts(before, after)):
                wrong.append((name, old, new))
    assert wrong == []


def test_a_release_adds_apis_and_versions() -> None:
    by_name = {change.name: change for change in compare_releases("4.3", "4.4")}
    assert (by_name["UnregisterControllerRequest"].what, by_name["UnregisterControllerRequest"].before) == (
        "added",
        None,
    )
    assert (by_name["ApiVersionsRequest"].before, by_name["ApiVersionsRequest"].after) == ("0-4", "0-5")
    assert "ShareFetchRequest" not in by_name


def test_a_release_removes_apis_and_versions() -> None:
    by_name = {change.name: change for change in compare_releases("3.9", "4.0")}
    assert (by_name["LeaderAndIsrRequest"].what, by_name["LeaderAndIsrRequest"].after) == ("removed", None)
    assert by_name["ProduceRequest"].after == "3-12"


def test_a_release_that_lays_a_version_out_anew_says_what_changed() -> None:
    by_name = {change.name: change for change in compare_releases("2.7", "2.8")}
    inside = by_name["EndQuorumEpochRequest"]
    assert (inside.what, inside.before, inside.after) == ("layout", "0", "0")
    assert [(version, change.what, change.path) for version, change in inside.changes] == [
        (0, "removed", "Topics.Partitions.ReplicaId")
    ]


@pytest.mark.parametrize("release", ["0.8.2", "2.2", "3.9", "4.4"])
def test_no_release_differs_from_itself(release: str) -> None:
    assert compare_releases(release, release) == []


def test_versions_in_a_release_are_those_it_served() -> None:
    assert versions_in(message("ShareFetchRequest"), "4.1") == [1]
    assert versions_in(message("ShareFetchRequest"), "3.8") == []
