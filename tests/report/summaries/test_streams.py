"""Streams groups: lanes hold the intervals of the marts; of many, those that can be seen."""

from pathlib import Path
from typing import Any

from kafkascope.report.build import build
from kafkascope.report.charts.tasks import short_names
from kafkascope.report.page.page import page
from kafkascope.report.summaries.scope import Scope
from kafkascope.report.summaries.streams import MOST_LOST, MOST_MOVES, MOST_STATUSES
from kafkascope.report.summaries.streams_lanes import MOST_DRAWN, MOST_LANES
from tests.report.build import MINUTE, NOON, NOW, SECOND, Row, incident, lake_of, report_of


def test_lanes_are_the_intervals_of_the_recorded_incident(tmp_path: Path) -> None:
    marts = incident("streams")
    (group,) = report_of(tmp_path / "lake", **marts).streams.shown
    assert [lane.task for lane in group.lanes] == ["0_0", "0_1", "0_2", "1_0", "1_1", "1_2"]
    drawn = {
        (lane.task, piece.role, piece.member_id, piece.from_at, piece.to_at)
        for lane in group.lanes
        for piece in lane.pieces
    }
    tasks_of = {
        (f"{row.subtopology_id}_{row.partition}", row.role, row.member_id, row.from_at, row.to_at)
        for row in marts["streams_tasks"]
    }
    assert tasks_of <= drawn and {role for _, role, *_ in drawn - tasks_of} == {"unheld"}
    assert (group.totals.moves, group.totals.lost, group.totals.pause_max_ms) == (10, 1, 4234)
    assert [lost.member for lost in group.lost] == ["second-StreamThread-1-consumer"]
    assert [status.name for status in group.statuses] == ["MISSING_INTERNAL_TOPICS", "ASSIGNMENT_DELAYED"]


def test_members_of_one_client_are_told_apart(tmp_path: Path) -> None:
    rows = [task(member_id="abcdefgh", client_id="app"), task(member_id="ijklmnop", client_id="app", partition=1)]
    (group,) = report_of(tmp_path / "lake", streams_tasks=rows, streams_group_health=[minute()]).streams.shown
    assert group.members == {"abcdefgh": "app abcdef", "ijklmnop": "app ijklmn"}


def test_of_many_tasks_and_intervals_a_bounded_number_is_drawn_and_the_rest_counted(tmp_path: Path) -> None:
    rows = [
        task(partition=at % 60, from_at=NOON + at * 10_000, to_at=NOON + at * 10_000 + 9_000, member_id=f"m{at % 12}")
        for at in range(12_000)
    ]
    (group,) = report_of(tmp_path / "lake", streams_tasks=rows, streams_group_health=[minute()]).streams.shown
    assert (len(group.lanes), group.lanes_left_out) == (MOST_LANES, 60 - MOST_LANES)
    drawn = sum(len(lane.pieces) for lane in group.lanes)
    assert 0 < drawn <= MOST_DRAWN
    assert drawn + sum(lane.too_short for lane in group.lanes) == 200 * MOST_LANES


def test_of_many_moves_those_with_the_longest_pauses_are_told(tmp_path: Path) -> None:
    moves = [move(pause_ms=at, taken_at=NOON + 1000 * at) for at in range(300)]
    (group,) = report_of(tmp_path / "lake", streams_moves=moves, streams_group_health=[minute()]).streams.shown
    assert sorted(a_move.pause_ms for a_move in group.moves) == list(range(300 - MOST_MOVES, 300))
    assert group.moves_left_out == 300 - MOST_MOVES


def test_lost_members_and_statuses_that_are_left_out_are_counted(tmp_path: Path) -> None:
    lost = [
        {"group_id": "counters", "member_id": f"m{at}", "last_seen_at": NOON, "noticed_at": NOON, "silent_ms": 0}
        | {"how": "silent", "active_tasks": 0, "standby_tasks": 0}
        for at in range(MOST_LOST + 3)
    ]
    status = {"group_id": "counters", "name": "STALE_TOPOLOGY", "detail": "", "from_at": NOON, "members": 1}
    marts: dict[str, Any] = {"streams_lost_members": lost, "streams_statuses": [status] * (MOST_STATUSES + 2)}
    report = report_of(tmp_path / "lake", streams_group_health=[minute()], **marts)
    (group,) = report.streams.shown
    assert (len(group.lost), group.lost_left_out) == (MOST_LOST, 3)
    assert (len(group.statuses), group.statuses_left_out) == (MOST_STATUSES, 2)
    assert "and 3 more members" in page(report) and "and 2 more statuses" in page(report)


def test_an_interval_that_others_may_have_held_is_not_drawn_as_unheld(tmp_path: Path) -> None:
    unheld = [
        {"group_id": "counters", "subtopology_id": "0", "partition": at, "from_at": NOON, "to_at": NOON + SECOND}
        | {"known": known}
        for at, known in enumerate((True, False))
    ]
    (group,) = report_of(tmp_path / "lake", streams_unheld=unheld, streams_group_health=[minute()]).streams.shown
    assert [[piece.role for piece in lane.pieces] for lane in group.lanes] == [["unheld"], []]


def test_between_leaves_out_what_lies_outside(tmp_path: Path) -> None:
    rows = [task(from_at=NOON + at * MINUTE, to_at=NOON + at * MINUTE + SECOND, partition=at) for at in range(5)]
    rows.append(task(partition=9, from_at=NOON, to_at=None))
    marts: dict[str, Any] = {"streams_tasks": rows, "streams_group_health": [minute(at) for at in range(5)]}
    scope = Scope(since=NOON + 2 * MINUTE, until=NOON + 3 * MINUTE)
    (group,) = build(lake_of(tmp_path / "lake", marts), scope, NOW).streams.shown
    assert [lane.task for lane in group.lanes] == ["0_2", "0_9"]
    assert group.totals.moves == 1


def test_a_group_at_rest_is_told_until_it_was_last_seen(tmp_path: Path) -> None:
    """Its last change was long before: what it holds, it holds still."""
    rows = [task(to_at=None, ended_by=None), task(partition=1, to_at=None, ended_by=None, from_at=NOON + SECOND)]
    marts: dict[str, Any] = {"streams_tasks": rows, "streams_group_health": [minute(at) for at in range(5)]}
    end = NOON + 4 * MINUTE + 30 * SECOND
    (group,) = build(lake_of(tmp_path / "lake", marts, last_at=end), Scope(), NOW).streams.shown
    assert (group.totals.first_at, group.totals.last_at) == (NOON, end)
    assert [lane.too_short for lane in group.lanes] == [0, 0]
    scope = Scope(until=NOON + 2 * MINUTE)
    (group,) = build(lake_of(tmp_path / "other", marts, last_at=end), scope, NOW).streams.shown
    assert group.totals.last_at == NOON + 2 * MINUTE


def test_what_all_names_end_with_is_left_out_of_labels() -> None:
    names = ["first-StreamThread-1-consumer", "second-StreamThread-1-consumer"]
    assert list(short_names(names).values()) == ["first", "second"]
    assert short_names(["a", "a-b"]) == {"a": "a", "a-b": "a-b"}
    assert short_names(["only-one"]) == {"only-one": "only-one"}


def task(**values: Any) -> Row:
    row = {"group_id": "counters", "member_id": "m-1", "client_id": "app", "subtopology_id": "0", "partition": 0}
    return row | {"role": "active", "from_at": NOON, "to_at": NOON + SECOND, "ended_by": "revoked"} | values


def move(**values: Any) -> Row:
    row = {"group_id": "counters", "subtopology_id": "0", "partition": 0, "from_member_id": "a", "to_member_id": "b"}
    return row | {"released_at": NOON, "taken_at": NOON, "pause_ms": 0, "cause": "revoked", "warm": False} | values


def minute(at: int = 0) -> Row:
    return {"group_id": "counters", "minute_at": NOON + at * MINUTE, "members": 1, "tasks": 6, "moves": 1}
