"""A streams group by the minute: states at its end, sums over it."""

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

from kafkascope.health.streams.events import StreamsEvent
from kafkascope.health.streams.group_health import StreamsGroupHealth, rows_of
from kafkascope.health.streams.rows import StreamsTask
from tests.health.streams.test_timeline import SECOND, answer, described, described_member, heartbeat, join, other


def beats(member: str, start: float, end: float) -> list[StreamsEvent]:
    return [heartbeat(start + step * 5, member) for step in range(int((end - start) // 5))]


def rows(*events: StreamsEvent | Iterable[StreamsEvent]) -> list[StreamsGroupHealth]:
    flat = [part for event in events for part in ([event] if isinstance(event, StreamsEvent) else event)]
    return list(rows_of(sorted(flat, key=lambda event: (event.at_us, event.order))))


def test_a_row_has_the_group_at_the_end_of_its_minute() -> None:
    first, second = rows(
        join(0, "a", endpoint="host:1", topology_epoch=2),
        answer(1, "a", "0_0,0_1", "", member_epoch=3),
        heartbeat(2, "a", "0_0,0_1", ""),
        described_member(3, "a", "0_0,0_1", member_epoch=3),
        described(3, group_epoch=3, assignment_epoch=3),
        beats("a", 5, 60),
        join(50, "b"),
        answer(51, "b", "", "0_0", member_epoch=4),
        heartbeat(52, "b", "", "0_0"),
        described_member(61, "a", "0_0,0_1", member_epoch=3),
        described_member(61, "b", "", "0_0", member_epoch=4),
        described(61, group_state="Reconciling", group_epoch=4, assignment_epoch=4),
        heartbeat(62, "a", member_epoch=-1),
        heartbeat(63, "b", "0_0", "", warmup="0_1"),
    )
    assert (first.minute_at, first.state, first.group_epoch, first.topology_epoch) == (0, "Stable", 3, 2)
    assert (first.members, first.joined, first.member_epoch_min, first.member_epoch_max) == (2, 2, 3, 4)
    assert (first.active_tasks, first.standby_tasks, first.warmup_tasks, first.tasks) == (2, 1, 0, 2)
    assert (first.endpoints, first.heartbeats, first.heartbeat_interval_ms) == (("host:1",), 15, 1000)
    assert (second.minute_at, second.state, second.group_epoch) == (60 * SECOND, "Reconciling", 4)
    assert (second.members, second.joined, second.left, second.lost) == (1, 0, 1, 0)
    assert (second.active_tasks, second.standby_tasks, second.warmup_tasks) == (1, 0, 1)
    assert (second.moves, second.pause_total_ms, second.pause_max_ms) == (1, 1000, 1000)


def test_a_group_whose_last_member_has_gone_is_empty_whatever_was_described_before() -> None:
    (row,) = rows(
        join(0, "a"),
        answer(1, "a", "0_0", ""),
        heartbeat(2, "a", "0_0", ""),
        described_member(3, "a", "0_0"),
        described(3),
        heartbeat(9, "a", member_epoch=-1),
    )
    assert (row.state, row.members, row.left) == ("Empty", 0, 1)


def test_the_pause_of_a_crash_belongs_to_the_minute_in_which_the_member_fell_silent() -> None:
    first, second = rows(
        join(0, "a"), answer(0, "a"), join(0, "b"), answer(0, "b"),
        heartbeat(1, "a", "0_0", ""), heartbeat(1, "b", "0_1", ""),
        beats("a", 5, 55), beats("b", 5, 75), other("disconnected", 55, connection_id="c-a"),
        answer(74, "b", "0_0,0_1"), heartbeat(75, "b", "0_0,0_1", ""),
    )  # fmt: skip
    assert (first.lost, first.lost_member_ids, first.members) == (1, ("a",), 1)
    assert (first.unheld_tasks, first.unheld_ms, first.unheld_task_ids) == (1, 5000, ("0_0",))
    assert (second.unheld_tasks, second.unheld_ms, second.unheld_task_ids) == (0, 15000, ("0_0",))
    assert (second.moves, second.pause_max_ms, second.lost) == (1, 20000, 0)


def test_missing_standbys_are_those_of_the_target_and_unknown_without_one() -> None:
    before = [join(0, "a"), join(0, "b"), heartbeat(1, "a", "0_0,0_1", ""), heartbeat(1, "b", "", "0_0")]
    assert rows(*before)[0].standbys_missing is None
    meant = [
        described_member(2, "a", "0_0,0_1"),
        described_member(2, "b", "", "0_0", target_standby="0_0,0_1"),
        described(2),
    ]
    assert rows(*before, *meant)[0].standbys_missing == 1
    assert rows(*before, *meant, heartbeat(3, "b", "", "0_0,0_1"))[0].standbys_missing == 0


def test_missing_standbys_follow_the_configuration_where_it_was_told() -> None:
    (row,) = rows(
        join(0, "a"), heartbeat(1, "a", "0_0,1_0", ""), other("config", 2, value=2),
        described_member(3, "a", "0_0,1_0"), described(3, stateful="1"),
    )  # fmt: skip
    assert row.standbys_missing == 2


def test_a_warm_up_that_never_finishes_grows_old_and_one_that_is_given_up_is_dropped() -> None:
    first, second = rows(
        join(0, "a"), heartbeat(10, "a", "", "", warmup="0_0,0_1"), beats("a", 15, 60),
        heartbeat(70, "a", "", "", warmup="0_1"), heartbeat(80, "a"),
    )  # fmt: skip
    assert (first.warmup_tasks, first.warmup_oldest_ms, first.warmups_dropped) == (2, 50000, 0)
    assert (second.warmup_tasks, second.warmup_oldest_ms, second.warmups_dropped) == (1, 70000, 1)


def test_statuses_errors_and_shutdown_requests_are_of_their_minute() -> None:
    first, second = rows(
        join(0, "a"), answer(1, "a", status="1 no topic x"), beats("a", 5, 55), heartbeat(59, "a", value=1),
        answer(61, "a", status=""), answer(62, "a", error_code=15), heartbeat(63, "a"),
    )  # fmt: skip
    assert (first.statuses, first.status_details) == (("MISSING_SOURCE_TOPICS",), ("no topic x",))
    assert (first.errors, first.shutdown_requests) == (0, 1)
    assert (second.statuses, second.errors, second.shutdown_requests) == (("MISSING_SOURCE_TOPICS",), 1, 0)


def test_minutes_without_events_have_no_rows() -> None:
    assert [row.minute_at // (60 * SECOND) for row in rows(join(0, "a"), heartbeat(600, "a"))] == [0, 10]


def test_a_standby_too_many_of_one_task_does_not_make_up_for_another() -> None:
    (row,) = rows(
        join(0, "a"), join(0, "b"), heartbeat(1, "a", "0_0,0_1", ""), heartbeat(1, "b", "", "0_0"),
        join(1, "c"), heartbeat(2, "c", "", "0_0"),
        described_member(3, "b", "", "0_0", target_standby="0_0,0_1"), described_member(3, "a", "0_0,0_1"),
        described_member(3, "c", ""), described(3),
    )  # fmt: skip
    assert (row.standby_tasks, row.standbys_missing) == (2, 1)


def test_a_task_is_counted_as_unheld_only_where_it_is_known_to_be() -> None:
    gone = [join(0, "a"), heartbeat(1, "a", "0_0", ""), heartbeat(2, "a", "", ""), heartbeat(3, "a")]
    assert (rows(*gone)[0].unheld_tasks, rows(*gone)[0].unheld_ms) == (0, 0)
    (row,) = rows(*gone, described_member(4, "a", ""), described(4))
    assert (row.unheld_tasks, row.unheld_ms) == (1, 2000)


def test_every_column_is_told_in_the_docs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "health-streams.md").read_text(encoding="utf-8")
    columns = [column.name for row in (StreamsTask, StreamsGroupHealth) for column in fields(row)]
    assert [column for column in columns if f"`{column}`" not in page] == []
