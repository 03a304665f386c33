"""Each rule by which a streams group's tasks begin, move and end."""

from typing import Any

import pytest

from kafkascope.health.streams.events import StreamsEvent, statuses_of, task_parts, tasks_of, topology_tasks
from kafkascope.health.streams.rows import StreamsTimeline
from kafkascope.health.streams.timeline import rows_of, timeline_of

SECOND = 1_000_000


def heartbeat(
    at: float, member: str, active: str | None = None, standby: str | None = None, **more: Any
) -> StreamsEvent:
    """Epoch 5 where it is not said; the connection is the member's own."""
    more = {"member_epoch": 5, "connection_id": f"c-{member}", "exchange_id": f"q{at}", **more}
    return StreamsEvent("heartbeat", int(at * SECOND), 0, "g", member_id=member, active=active, standby=standby, **more)


def join(at: float, member: str, **more: Any) -> StreamsEvent:
    return heartbeat(at, member, "", "", warmup="", member_epoch=0, process_id=f"p-{member}", **more)


def answer(at: float, member: str, active: str | None = None, standby: str | None = None, **more: Any) -> StreamsEvent:
    more = {"member_epoch": 5, "heartbeat_interval_ms": 1000, "error_code": 0, "exchange_id": f"a{at}", **more}
    return StreamsEvent("answer", int(at * SECOND), 1, "g", member_id=member, active=active, standby=standby, **more)


def described_member(at: float, member: str, active: str, standby: str = "", **more: Any) -> StreamsEvent:
    more = {"member_epoch": 5, "exchange_id": f"d{at}", **more}
    return StreamsEvent(
        "described_member",
        int(at * SECOND),
        1,
        "g",
        member_id=member,
        active=active,
        standby=standby,
        warmup="",
        **more,
    )


def described(at: float, **more: Any) -> StreamsEvent:
    more = {"group_state": "Stable", "exchange_id": f"d{at}", **more}
    return StreamsEvent("described", int(at * SECOND), 2, "g", **more)


def other(kind: str, at: float, **more: Any) -> StreamsEvent:
    return StreamsEvent(kind, int(at * SECOND), 0, "g", **more)


def timeline_from(*events: StreamsEvent, session_timeout_ms: int = 45_000) -> StreamsTimeline:
    timeline = timeline_of(events, session_timeout_ms)
    assert timeline is not None
    return timeline


def intervals(timeline: StreamsTimeline) -> list[tuple[Any, ...]]:
    """Member, task, role, from, to, what ended it; times in seconds."""
    return [
        (
            row.member_id,
            f"{row.subtopology_id}_{row.partition}",
            row.role,
            row.from_at / SECOND,
            None if row.to_at is None else row.to_at / SECOND,
            row.ended_by,
        )
        for row in timeline.tasks
    ]


def test_a_task_is_held_from_the_request_that_reports_it_not_from_the_answer_that_grants_it() -> None:
    timeline = timeline_from(join(0, "a"), answer(1, "a", "0_0"), heartbeat(2, "a", "0_0", ""))
    assert intervals(timeline) == [("a", "0_0", "active", 2.0, None, None)]
    assert timeline.tasks[0].from_known
    assert timeline.tasks[0].process_id == "p-a"
    assert timeline.tasks[0].from_exchange_id == "q2"


def test_null_tasks_are_unchanged_and_empty_tasks_are_none() -> None:
    timeline = timeline_from(join(0, "a"), heartbeat(1, "a", "0_0", ""), heartbeat(2, "a"), heartbeat(3, "a", "", ""))
    assert intervals(timeline) == [("a", "0_0", "active", 1.0, 3.0, "revoked")]


def test_a_null_list_beside_a_full_one_keeps_its_role() -> None:
    timeline = timeline_from(join(0, "a"), heartbeat(1, "a", "0_0", "1_0"), heartbeat(2, "a", "", None))
    assert intervals(timeline) == [
        ("a", "0_0", "active", 1.0, 2.0, "revoked"),
        ("a", "1_0", "standby", 1.0, None, None),
    ]


@pytest.mark.parametrize("epoch", [-1, -2])
def test_leaving_ends_every_task(epoch: int) -> None:
    timeline = timeline_from(join(0, "a"), heartbeat(1, "a", "0_0", "0_1"), heartbeat(2, "a", member_epoch=epoch))
    assert intervals(timeline) == [("a", "0_0", "active", 1.0, 2.0, "left"), ("a", "0_1", "standby", 1.0, 2.0, "left")]
    assert timeline.members[0].ended_by == "left"
    assert timeline.lost == []


@pytest.mark.parametrize("code", [25, 110])
def test_a_fenced_member_holds_nothing_from_the_answer_on(code: int) -> None:
    timeline = timeline_from(
        join(0, "a"), heartbeat(1, "a", "0_0", ""), heartbeat(2, "a"), answer(2.5, "a", error_code=code), join(3, "a")
    )
    assert intervals(timeline) == [("a", "0_0", "active", 1.0, 2.5, "fenced")]
    assert [(row.ended_by, row.joined) for row in timeline.members] == [("fenced", True), (None, True)]


def test_an_error_that_passes_ends_nothing() -> None:
    timeline = timeline_from(
        join(0, "a"), heartbeat(1, "a", "0_0", ""), heartbeat(2, "a"), answer(2.5, "a", error_code=16)
    )
    assert intervals(timeline) == [("a", "0_0", "active", 1.0, None, None)]
    assert timeline.minutes == {0: [3, 1, 1, 0]}


def test_joining_again_without_tasks_gives_up_those_it_had() -> None:
    timeline = timeline_from(join(0, "a"), heartbeat(1, "a", "0_0", ""), join(2, "a"))
    assert intervals(timeline) == [("a", "0_0", "active", 1.0, 2.0, "rejoined")]


def test_a_move_has_the_pause_between_letting_go_and_taking() -> None:
    timeline = timeline_from(
        join(0, "a"),
        heartbeat(1, "a", "0_0,0_1", ""),
        join(2, "b"),
        heartbeat(3, "a", "0_0", ""),
        heartbeat(3.25, "b", "0_1", ""),
    )
    (move,) = timeline.moves
    assert (move.from_member_id, move.to_member_id, move.released_at, move.taken_at) == ("a", "b", 3000000, 3250000)
    assert (move.partition, move.pause_ms, move.cause, move.warm) == (1, 250, "revoked", False)
    row = timeline.tasks[-1]
    assert (row.member_id, row.previous_member_id, row.pause_ms, row.warm) == ("b", "a", 250, False)


def test_a_crashed_member_held_its_tasks_until_its_connection_closed_and_is_lost_when_another_is_granted_them() -> None:
    timeline = timeline_from(
        join(0, "a"),
        join(0, "b"),
        heartbeat(1, "a", "0_0", "0_1"),
        heartbeat(1, "b", "0_1", ""),
        other("disconnected", 1.5, connection_id="c-a"),
        *(heartbeat(at, "b") for at in range(2, 9)),
        answer(8.5, "b", "0_0,0_1"),
        heartbeat(9, "b", "0_0,0_1", ""),
    )
    assert ("a", "0_0", "active", 1.0, 1.5, "lost") in intervals(timeline)
    assert ("a", "0_1", "standby", 1.0, 1.5, "lost") in intervals(timeline)
    (lost,) = timeline.lost
    assert (lost.last_seen_at, lost.noticed_at, lost.silent_ms, lost.how) == (1500000, 8500000, 7000, "closed")
    assert (lost.active_tasks, lost.standby_tasks, lost.exchange_id) == (1, 1, "a8.5")
    assert [(move.cause, move.pause_ms) for move in timeline.moves] == [("lost", 7500)]


def test_a_member_that_is_silent_without_a_closed_connection_held_its_tasks_until_its_last_request() -> None:
    timeline = timeline_from(
        join(0, "a"),
        answer(0, "a"),
        join(0, "b"),
        heartbeat(1, "a", "0_0", ""),
        answer(5, "b", "0_0"),
        heartbeat(6, "b", "0_0", ""),
    )
    assert intervals(timeline)[0] == ("a", "0_0", "active", 1.0, 1.0, "lost")
    assert timeline.lost[0].how == "silent"


def test_a_member_that_another_connection_takes_up_is_not_lost() -> None:
    timeline = timeline_from(
        join(0, "a"),
        heartbeat(1, "a", "0_0", ""),
        other("disconnected", 2, connection_id="c-a"),
        heartbeat(3, "a", connection_id="c-2"),
        other("disconnected", 4, connection_id="c-a"),
        heartbeat(5, "a"),
    )
    assert intervals(timeline) == [("a", "0_0", "active", 1.0, None, None)]


def test_a_living_member_whose_task_another_reports_had_let_it_go() -> None:
    timeline = timeline_from(
        join(0, "a"),
        answer(0, "a"),
        heartbeat(1, "a", "0_0,0_1", ""),
        join(1, "b"),
        answer(1.5, "b", "0_0"),
        heartbeat(2, "a"),
        heartbeat(2, "b", "0_0", ""),
    )
    assert intervals(timeline)[0] == ("a", "0_0", "active", 1.0, 2.0, "revoked")
    assert timeline.lost == []
    assert ("a", "0_1", "active", 1.0, None, None) in intervals(timeline)


def test_a_member_that_a_description_leaves_out_is_lost_when_it_is_silent() -> None:
    before = [
        join(0, "a"),
        answer(0, "a"),
        join(0, "b"),
        answer(0, "b"),
        heartbeat(1, "a", "0_0", ""),
        heartbeat(1, "b", "", ""),
    ]
    alive = timeline_from(*before, described_member(1.5, "b", ""), described(1.5))
    assert alive.lost == []
    dead = timeline_from(*before, heartbeat(4, "b"), described_member(4.5, "b", ""), described(4.5))
    assert [(row.member_id, row.noticed_at, row.exchange_id) for row in dead.lost] == [("a", 4500000, "d4.5")]


def test_a_description_that_failed_loses_nobody() -> None:
    timeline = timeline_from(join(0, "a"), answer(0, "a"), heartbeat(1, "a", "0_0", ""), described(9, error_code=30))
    assert timeline.lost == []


def test_a_member_silent_for_the_session_timeout_is_lost_while_others_go_on() -> None:
    timeline = timeline_from(
        join(0, "a"), join(0, "b"), heartbeat(1, "a", "0_0", ""), *(heartbeat(at, "b") for at in range(1, 70, 5))
    )
    assert intervals(timeline) == [("a", "0_0", "active", 1.0, 1.0, "lost")]


def test_a_recording_that_goes_on_after_the_last_member_fell_silent_shows_it_lost() -> None:
    timeline = timeline_from(join(0, "a"), heartbeat(1, "a", "0_0", ""), other("seen", 60))
    assert intervals(timeline) == [("a", "0_0", "active", 1.0, 1.0, "lost")]
    assert [(row.from_at, row.to_at, row.cause) for row in timeline.unheld] == [(1000000, None, "lost")]


def test_a_recording_that_ends_leaves_intervals_open_and_those_of_closed_connections_closed() -> None:
    timeline = timeline_from(
        join(0, "a"),
        join(0, "b"),
        heartbeat(1, "a", "0_0", ""),
        heartbeat(1, "b", "0_1", ""),
        other("disconnected", 2, connection_id="c-b"),
        heartbeat(3, "a"),
    )
    assert intervals(timeline) == [("a", "0_0", "active", 1.0, None, None), ("b", "0_1", "active", 1.0, 2.0, "closed")]


def test_a_hole_in_the_recording_ends_what_was_held_at_the_last_request() -> None:
    timeline = timeline_from(
        join(0, "a"), heartbeat(1, "a", "0_0", ""), heartbeat(500, "a"), heartbeat(501, "a", "0_0", "")
    )
    assert intervals(timeline) == [
        ("a", "0_0", "active", 1.0, 1.0, "unseen"),
        ("a", "0_0", "active", 501.0, None, None),
    ]
    assert not timeline.tasks[1].from_known
    assert timeline.moves == [] and timeline.lost == []


def test_a_recording_that_starts_in_the_middle_says_that_a_task_may_be_older() -> None:
    timeline = timeline_from(heartbeat(0, "a"), heartbeat(1, "a", "0_0", ""), heartbeat(2, "a", "0_0,0_1", ""))
    assert [row.from_known for row in timeline.tasks] == [False, True]
    assert not timeline.members[0].joined


def test_a_description_tells_what_a_member_holds_only_until_it_reports_itself() -> None:
    timeline = timeline_from(
        heartbeat(0, "a"),
        described_member(1, "a", "0_0"),
        described(1),
        heartbeat(2, "a", "0_0,0_1", ""),
        described_member(3, "a", "0_0"),
        described(3),
    )
    assert intervals(timeline) == [("a", "0_0", "active", 1.0, None, None), ("a", "0_1", "active", 2.0, None, None)]
    assert [(row.source, row.from_known) for row in timeline.tasks] == [("describe", False), ("heartbeat", True)]


def test_descriptions_alone_make_a_timeline() -> None:
    timeline = timeline_from(
        described_member(0, "a", "0_0"),
        described_member(0, "b", "0_1"),
        described(0),
        described_member(100, "b", "0_0,0_1"),
        described(100),
    )
    assert intervals(timeline) == [
        ("a", "0_0", "active", 0.0, 100.0, "revoked"),
        ("b", "0_1", "active", 0.0, None, None),
        ("b", "0_0", "active", 100.0, None, None),
    ]
    assert [row.ended_by for row in timeline.members] == ["gone", None]


def test_a_member_that_left_does_not_come_back_by_a_description_made_before() -> None:
    timeline = timeline_from(
        join(0, "a"),
        heartbeat(1, "a", "0_0", ""),
        heartbeat(2, "a", member_epoch=-1),
        described_member(2.1, "a", "0_0"),
        described(2.1),
    )
    assert intervals(timeline) == [("a", "0_0", "active", 1.0, 2.0, "left")]


def test_a_standby_that_becomes_active_is_promoted_and_warm_also_when_it_closes_first() -> None:
    at_once = timeline_from(join(0, "a"), heartbeat(1, "a", "", "0_0"), heartbeat(2, "a", "0_0", ""))
    assert intervals(at_once)[0] == ("a", "0_0", "standby", 1.0, 2.0, "promoted")
    in_steps = timeline_from(
        join(0, "a"),
        answer(0, "a"),
        join(0, "b"),
        heartbeat(1, "b", "0_0", ""),
        heartbeat(1, "a", "", "0_0"),
        heartbeat(2, "b", member_epoch=-1),
        heartbeat(3, "a", "", ""),
        heartbeat(4, "a", "0_0", ""),
    )
    assert ("a", "0_0", "standby", 1.0, 3.0, "promoted") in intervals(in_steps)
    assert [(move.warm, move.pause_ms) for move in in_steps.moves] == [(True, 2000)]


def test_a_standby_closed_long_before_is_no_copy() -> None:
    timeline = timeline_from(
        join(0, "a"),
        answer(0, "a"),
        join(0, "b"),
        heartbeat(1, "b", "0_0", ""),
        heartbeat(1, "a", "", "0_0"),
        heartbeat(2, "a", "", ""),
        *(heartbeat(at, "b") for at in range(3, 9)),
        heartbeat(9, "b", "", ""),
        heartbeat(10, "a", "0_0", ""),
    )
    assert timeline.moves[0].warm is False
    assert ("a", "0_0", "standby", 1.0, 2.0, "revoked") in intervals(timeline)


def test_an_active_task_that_becomes_a_standby_is_demoted() -> None:
    timeline = timeline_from(join(0, "a"), heartbeat(1, "a", "0_0", ""), heartbeat(2, "a", "", "0_0"))
    assert intervals(timeline)[0] == ("a", "0_0", "active", 1.0, 2.0, "demoted")


def test_a_warm_up_finishes_by_promotion_or_not_at_all() -> None:
    timeline = timeline_from(
        join(0, "a"),
        heartbeat(1, "a", "", "", warmup="0_0,0_1"),
        heartbeat(2, "a", "0_0", "", warmup="0_1"),
        heartbeat(3, "a", "0_0", "", warmup=""),
        heartbeat(60, "a"),
        heartbeat(99, "a"),
    )
    assert intervals(timeline)[:2] == [
        ("a", "0_0", "warmup", 1.0, 2.0, "promoted"),
        ("a", "0_1", "warmup", 1.0, 3.0, "revoked"),
    ]


def test_a_granted_task_is_unheld_until_it_is_reported() -> None:
    timeline = timeline_from(join(0, "a"), answer(1, "a", "0_0"), heartbeat(2, "a", "0_0", ""))
    (row,) = timeline.unheld
    assert (row.from_at, row.to_at, row.cause, row.ended_by, row.known) == (1000000, 2000000, "new", "taken", True)


def test_a_task_of_the_topology_that_nobody_holds_is_unheld_and_proved_by_a_description() -> None:
    timeline = timeline_from(
        join(0, "a"), heartbeat(1, "a", "0_0", ""), described_member(2, "a", "0_0"), described(2, topology="0=2")
    )
    (row,) = timeline.unheld
    assert (row.partition, row.from_at, row.to_at, row.known) == (1, 2000000, None, True)


def test_a_task_that_went_where_the_recording_does_not_see_is_not_known_to_be_unheld() -> None:
    timeline = timeline_from(join(0, "a"), heartbeat(1, "a", "0_0", ""), heartbeat(2, "a", "", ""))
    assert [(row.to_at, row.known) for row in timeline.unheld] == [(None, False)]


def test_a_member_that_only_descriptions_show_holds_what_they_say() -> None:
    timeline = timeline_from(
        join(0, "a"),
        heartbeat(1, "a", "0_0", ""),
        heartbeat(2, "a", "", ""),
        described_member(3, "a", ""),
        described_member(3, "far", "0_0"),
        described(3),
    )
    assert [(row.from_at, row.to_at) for row in timeline.unheld] == [(2000000, 3000000)]
    assert ("far", "0_0", "active", 3.0, None, None) in intervals(timeline)


def test_a_group_that_was_shut_down_has_no_unheld_tasks() -> None:
    timeline = timeline_from(
        join(0, "a"),
        heartbeat(1, "a", "0_0", ""),
        heartbeat(2, "a", member_epoch=-1),
        join(9, "b"),
        heartbeat(10, "b", "0_0", ""),
    )
    assert [(row.from_at, row.to_at, row.cause) for row in timeline.unheld] == [(9000000, 10000000, "left")]
    assert timeline.moves[0].pause_ms == 8000


def test_a_new_topology_forgets_tasks_that_nobody_holds() -> None:
    timeline = timeline_from(
        join(0, "a", topology_epoch=0),
        answer(1, "a", "0_0,9_0"),
        heartbeat(2, "a", "0_0", "", topology_epoch=1),
        heartbeat(3, "a"),
    )
    assert [(row.subtopology_id, row.to_at, row.ended_by) for row in timeline.unheld] == [
        ("0", 2000000, "topology"),
        ("9", 2000000, "topology"),
    ]
    assert [change.value for change in timeline.changes if change.what == "topology_epoch"] == [0, 1]


def test_a_status_lasts_until_no_member_is_told_it() -> None:
    timeline = timeline_from(
        join(0, "a"),
        answer(1, "a", status="3 Internal topics are missing: x"),
        join(1, "b"),
        answer(2, "b", status="3 Internal topics are missing: x"),
        answer(3, "a", status=""),
        answer(4, "a"),
        answer(5, "b", status="1 Source topics are missing: y"),
    )
    assert [(row.code, row.name, row.from_at, row.to_at, row.members) for row in timeline.statuses] == [
        (3, "MISSING_INTERNAL_TOPICS", 1000000, 5000000, 2),
        (1, "MISSING_SOURCE_TOPICS", 5000000, None, 1),
    ]
    assert timeline.statuses[0].detail == "Internal topics are missing: x"


def test_a_null_status_is_unchanged() -> None:
    timeline = timeline_from(join(0, "a"), answer(1, "a", status="5 x"), answer(2, "a", status=None))
    assert [(row.name, row.to_at) for row in timeline.statuses] == [("ASSIGNMENT_DELAYED", None)]


def test_a_status_that_nobody_has_named_keeps_its_code() -> None:
    assert timeline_from(join(0, "a"), answer(1, "a", status="42 x")).statuses[0].name == "42"


def test_endpoints_and_member_epochs_are_kept() -> None:
    timeline = timeline_from(
        join(0, "a", endpoint="host:7"), answer(1, "a", member_epoch=3), answer(2, "a", member_epoch=4)
    )
    assert timeline.members[0].endpoint == "host:7"
    assert [(c.at, c.value) for c in timeline.changes if c.what == "member_epoch"] == [(1000000, 3), (2000000, 4)]


def test_no_events_make_no_rows() -> None:
    assert timeline_of([]) is None
    assert list(rows_of([])) == []


def test_texts_of_tasks_statuses_and_topologies_are_read() -> None:
    assert tasks_of("") == frozenset() and tasks_of("0_0,1_2") == {"0_0", "1_2"}
    assert task_parts("name__0_12") == ("name__0", 12)
    assert statuses_of("3 a b\n4 ") == ((3, "a b"), (4, ""))
    assert topology_tasks("0=2,1=1") == {"0_0", "0_1", "1_0"}


def test_a_description_of_an_empty_group_makes_nothing_unheld() -> None:
    assert timeline_from(described(1, group_state="Empty", topology="0=2")).unheld == []


def test_a_standby_closed_just_before_its_owner_let_go_is_a_copy() -> None:
    timeline = timeline_from(
        join(0, "a"),
        answer(0, "a"),
        join(0, "b"),
        heartbeat(1, "b", "0_0", ""),
        heartbeat(1, "a", "", "0_0"),
        heartbeat(2, "a", "", ""),
        heartbeat(3, "b", "", ""),
        heartbeat(4, "a", "0_0", ""),
    )
    assert [move.warm for move in timeline.moves] == [True]


def test_a_member_lost_after_a_description_held_nothing_before_that_said_so() -> None:
    timeline = timeline_from(heartbeat(0, "a"), described_member(3, "a", "0_0"), described(3), other("seen", 60))
    assert intervals(timeline) == [("a", "0_0", "active", 3.0, 3.0, "lost")]
