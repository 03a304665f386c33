"""Share groups: sums and pictures have every record of the marts once, however many there are."""

from pathlib import Path

import numpy as np
import pytest

from kafkascope.report.build import build
from kafkascope.report.charts.heat import heat_figure, shades
from kafkascope.report.charts.members import stripe_heights
from kafkascope.report.page.page import page
from kafkascope.report.summaries.scope import Scope
from kafkascope.report.summaries.share import (
    MOST_GROUPS,
    MOST_LINES,
    MOST_MEMBERS,
    MOST_RUNS,
    Held,
    _runs,
    natural,
    runs,
)
from tests.report.build import MINUTE, NOON, NOW, SECOND, delivery, incident, lake_of, put, report_of


def test_sums_are_those_of_the_recorded_incident(tmp_path: Path) -> None:
    (group,) = report_of(tmp_path / "lake", **incident("share")).share.shown
    outcomes = {
        "accepted": 120,
        "released": 4,
        "rejected": 1,
        "lock_expired": 4,
        "disconnected": 4,
        "session_closed": 3,
    }
    assert (group.group_id, group.acquired, group.redelivered, group.archived) == ("processors", 136, 14, 1)
    assert group.outcomes == outcomes
    assert {name: sum(steps) for name, steps in group.ended.items()} == outcomes
    assert group.counts == ((1, 122), (2, 11), (3, 1), (4, 1), (5, 1))
    assert [place.redelivered for place in group.places] == [sum(row) for row in group.again] == [14, 0, 0]
    assert [place.highest_count for place in group.places] == [5, 1, 1]
    assert (group.health.state, group.health.near_limit) == ("Empty", 2)


def test_archived_records_are_those_of_the_finding(tmp_path: Path) -> None:
    """A rejected record is dropped too, but by the application and not at the delivery limit."""
    report = report_of(tmp_path / "lake", **incident("share"))
    (poison,) = [finding for finding in report.findings.shown if finding.rule == "share_poison_record"]
    assert report.share.shown[0].archived == poison.figures["records"] == 1


def test_lanes_show_who_held_what_until_when(tmp_path: Path) -> None:
    (group,) = report_of(tmp_path / "lake", **incident("share")).share.shown
    lanes = {lane.member.client_id: lane for lane in group.members}
    assert list(lanes) == ["renewer", "hung", "steady", "doomed", "leaver"]
    first = lanes["hung"].held[0]
    assert first.records == {"lock_expired": 4}
    # three seconds of lock, in steps of a tenth
    assert (first.last - first.first + 1) * group.buckets.step_us == pytest.approx(3 * SECOND, abs=200_000)
    assert lanes["renewer"].member.renewals == 14
    assert lanes["doomed"].member.outcomes == {"accepted": 1, "disconnected": 4}


def test_what_is_still_held_reaches_to_the_end(tmp_path: Path) -> None:
    rows = [delivery(), delivery(member_id="m-2", outcome="open", outcome_at=None), delivery(acquired_at=NOON + MINUTE)]
    (group,) = report_of(tmp_path / "lake", share_deliveries=rows).share.shown
    (open_lane,) = [lane for lane in group.members if lane.member.member_id == "m-2"]
    assert open_lane.held == (Held(0, group.buckets.count - 1, {"open": 1}),)
    assert group.ended["open"][0] == 1


def test_what_was_acquired_before_the_recording_counts_where_it_ended(tmp_path: Path) -> None:
    rows = [delivery(), delivery(member_id="m-2", acquired_at=None, delivery_count=None, outcome_at=NOON + MINUTE)]
    (group,) = report_of(tmp_path / "lake", share_deliveries=rows).share.shown
    (lane,) = [lane for lane in group.members if lane.member.member_id == "m-2"]
    assert [held.first for held in lane.held] == [group.buckets.count - 1]
    assert sum(group.ended["accepted"]) == 2


def test_topics_without_a_name_go_by_their_id(tmp_path: Path) -> None:
    (group,) = report_of(tmp_path / "lake", share_deliveries=[delivery(topic=None, partition=3)]).share.shown
    assert [place.name for place in group.places] == ["AAAAAAAAAAAAAAAAAAAAAQ-3"]


def test_of_many_groups_those_in_trouble_are_drawn_and_others_are_lines(tmp_path: Path) -> None:
    count = MOST_GROUPS + MOST_LINES + 3
    rows = [delivery(group_id=f"g{at:03}") for at in range(count)]
    rows.append(delivery(group_id=f"g{count - 1:03}", outcome="lock_expired", first_offset=8, last_offset=8))
    shares = report_of(tmp_path / "lake", share_deliveries=rows).share
    assert shares.shown[0].group_id == f"g{count - 1:03}"
    assert (len(shares.shown), len(shares.others), shares.left_out, shares.count) == (MOST_GROUPS, MOST_LINES, 3, count)


def test_of_many_members_those_in_trouble_are_drawn_and_the_rest_is_counted(tmp_path: Path) -> None:
    rows = [delivery(member_id=f"m{at}", outcome="released" if at == 30 else "accepted") for at in range(40)]
    (group,) = report_of(tmp_path / "lake", share_deliveries=rows).share.shown
    assert len(group.members) == MOST_MEMBERS and group.members_left_out == 40 - MOST_MEMBERS
    assert "m30" in [lane.member.member_id for lane in group.members]


def test_between_leaves_out_what_ended_before_and_what_was_acquired_after(tmp_path: Path) -> None:
    rows = [delivery(acquired_at=NOON + at * MINUTE, outcome_at=NOON + at * MINUTE + SECOND) for at in range(10)]
    # in hand from before until after
    rows.append(delivery(member_id="long", outcome="lock_expired", acquired_at=NOON, outcome_at=NOON + 9 * MINUTE))
    lake = lake_of(tmp_path / "lake", {"share_deliveries": rows})
    report = build(lake, Scope(since=NOON + 3 * MINUTE, until=NOON + 5 * MINUTE), NOW)
    (group,) = report.share.shown
    assert group.outcomes == {"accepted": 2, "lock_expired": 1}
    assert group.ended == {"accepted": group.ended["accepted"]} and sum(group.ended["accepted"]) == 2
    assert group.buckets.first_at >= NOON + 3 * MINUTE - group.buckets.step_us
    (lane,) = [lane for lane in group.members if lane.member.member_id == "long"]
    assert lane.held == (Held(0, group.buckets.count - 1, {"lock_expired": 1}),)


def test_a_mart_of_an_older_kafkascope_is_read_without_its_new_columns(tmp_path: Path) -> None:
    import pyarrow as pa

    from kafkascope.lake.marts import MARTS
    from kafkascope.lake.tables import LakeTable
    from kafkascope.lake.write.files import Files
    from kafkascope.lake.write.replace import replace

    lake = lake_of(tmp_path / "lake", {"share_deliveries": [delivery()]})
    kept = [field for field in MARTS["share_group_health"].schema if field.name != "near_limit"]
    older = LakeTable("share_group_health", pa.schema(kept), None)
    files = Files(lake, "", "mart")
    files.add(older, pa.Table.from_pylist([{"group_id": "processors", "minute_at": NOON, "lag": 9}], older.schema))
    replace(lake, older, files.close())
    (group,) = build(lake, Scope(), NOW).share.shown
    assert (group.health.lag, group.health.near_limit) == (9, 0)


def test_health_is_that_of_the_last_minute_that_told(tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake", {"share_deliveries": [delivery()]})
    minutes = [(1, "Stable", 70), (0, "Empty", 5), (2, None, None)]
    rows = [
        {"group_id": "processors", "minute_at": NOON + at * MINUTE, "state": state, "lag": lag, "lag_partitions": 1}
        for at, state, lag in minutes
    ]
    put(lake, "share_group_health", rows)
    (group,) = build(lake, Scope(), NOW).share.shown
    assert (group.health.state, group.health.lag, group.health.lag_at) == ("Stable", 70, NOON + MINUTE)


def test_a_lane_that_changes_at_every_step_is_drawn_in_coarser_ones() -> None:
    held = np.zeros((8, 160), np.int64)
    held[0], held[3, ::2] = 5, 1
    assert len(runs(held, 1)) == 160
    assert _runs(held) == (Held(0, 159, {"accepted": 5, "lock_expired": 1}),)
    busy = np.random.default_rng(1).integers(0, 2, (8, 160))
    assert 1 < len(_runs(busy)) <= MOST_RUNS


@pytest.mark.parametrize(
    ("largest", "limits"), [(1, [1]), (5, [1, 2, 3, 4, 5]), (6, [2, 3, 5, 6]), (10_000, [7, 40, 252, 1585, 10_000])]
)
def test_shades_end_with_the_largest(largest: int, limits: list[int]) -> None:
    assert shades(largest) == limits


def test_a_rare_outcome_has_a_stripe_that_can_be_seen() -> None:
    heights = stripe_heights({"accepted": 1_000_000, "lock_expired": 1})
    assert heights["lock_expired"] >= 2.5 and sum(heights.values()) == pytest.approx(20)


def test_partitions_come_in_the_order_of_their_numbers() -> None:
    assert sorted(["orders-10", "orders-2", "9", "a1b"], key=natural) == ["9", "a1b", "orders-2", "orders-10"]


def test_a_group_that_somebody_only_asked_after_is_told(tmp_path: Path) -> None:
    """As of `kafkascope observe`: members and lag, and no delivery."""
    minutes = [
        {"group_id": "quiet", "minute_at": NOON + at * MINUTE, "state": "Empty", "members": 0, "lag": 7 + at}
        | {"lag_partitions": 1}
        for at in range(3)
    ]
    report = report_of(tmp_path / "lake", share_group_health=minutes, share_deliveries=[delivery()])
    assert [group.group_id for group in report.share.shown] == ["processors", "quiet"]
    group = report.share.shown[1]
    assert (group.first_at, group.last_at) == (NOON, NOON + 2 * MINUTE)
    assert (group.acquired, group.health.state, group.health.lag, group.health.members) == (0, "Empty", 9, 0)
    text = page(report)
    assert "No delivery was recorded." in text and "of 1 partition, 12:02" in text


def test_a_delivery_whose_acquisition_nobody_saw_counts_when_it_ended(tmp_path: Path) -> None:
    rows = [delivery(acquired_at=None, delivery_count=None, outcome_at=NOON + 2 * MINUTE)]
    lake = lake_of(tmp_path / "lake", {"share_deliveries": rows})
    before, then = Scope(until=NOON + MINUTE), Scope(since=NOON + MINUTE, until=NOON + 3 * MINUTE)
    assert not build(lake, before, NOW).share.shown
    assert [group.acquired for group in build(lake, then, NOW).share.shown] == [1]


def test_large_numbers_have_room_beside_the_heat_map(tmp_path: Path) -> None:
    rows = [delivery(last_offset=10_000_006), delivery(last_offset=2_500_006, delivery_count=2)]
    (group,) = report_of(tmp_path / "lake", share_deliveries=rows).share.shown
    assert ">20 %</text>" in heat_figure(group, "h").text
    (group,) = report_of(tmp_path / "other", share_deliveries=[delivery(delivery_count=2)]).share.shown
    assert ">1 of 1</text>" in heat_figure(group, "h").text
