"""The state of a share partition after each write, and what agrees with recorded deliveries."""

from typing import Any

from kafkascope.health.disks.agreement import EndedDelivery, agreement_of
from kafkascope.health.disks.share_state import ShareWrite, StateBatch, states_of

SECOND = 1_000_000


def write(
    offset: int, start: int, *batches: tuple[int, int, int, int], kind: str = "update", at: int = 0
) -> ShareWrite:
    return ShareWrite(offset, at, kind, 0, 2, 0, start, -1, tuple(StateBatch(*batch) for batch in batches))


def delivery(
    first: int, last: int, outcome: str, count: int = 1, *, archived: bool = False, at: int = 10
) -> EndedDelivery:
    return EndedDelivery(first, last, count, outcome, archived, 0, at * SECOND)


def agreed(deliveries: list[EndedDelivery], writes: list[ShareWrite]) -> list[tuple[Any, ...]]:
    rows = agreement_of("c", "g", "orders", "t", 0, deliveries, writes, 100 * SECOND)
    return [(row.verdict, row.state, row.delivery_count, row.first_offset, row.last_offset) for row in rows]


def test_updates_cut_and_replace_what_was_there() -> None:
    states = list(
        states_of("c", "g", "orders", "t", 0, [
            write(0, -1, kind="snapshot"),
            write(1, 0, (0, 9, 2, 1)),
            write(2, -1, (10, 19, 0, 1)),
            write(3, -1, (12, 13, 2, 2), (14, 14, 4, 5)),
            write(4, 10, (10, 11, 2, 2)),
            write(5, 15, (15, 19, 0, 1), kind="snapshot"),
        ])
    )  # fmt: skip
    assert [(s.start_offset, s.end_offset, s.available, s.acknowledged, s.archived) for s in states] == [
        (None, None, 0, 0, 0),
        (0, 10, 0, 10, 0),
        (0, 20, 10, 10, 0),
        (0, 20, 7, 12, 1),
        (10, 20, 5, 4, 1),
        (15, 20, 5, 0, 0),
    ]
    assert states[3].max_delivery_count == 5


def test_a_late_write_of_an_earlier_delivery_changes_nothing() -> None:
    first, last = list(states_of("c", "g", None, "t", 0, [write(0, 0, (0, 4, 0, 2)), write(1, 0, (0, 4, 2, 1))]))
    assert (first.available, last.available, last.acknowledged) == (5, 5, 0)


def test_ends_that_were_written_agree() -> None:
    deliveries = [
        delivery(0, 4, "accepted"),
        delivery(5, 5, "released"),
        delivery(5, 5, "released", 2, archived=True),
        delivery(6, 6, "rejected"),
    ]
    writes = [
        write(0, 0, (0, 4, 2, 1), (5, 5, 0, 1), at=9 * SECOND),
        write(1, 5, (5, 5, 4, 2), (6, 6, 4, 1), at=9 * SECOND),
    ]
    assert {row[0] for row in agreed(deliveries, writes)} == {"agree"}
    assert sum(row[4] - row[3] + 1 for row in agreed(deliveries, writes)) == 8


def test_what_only_one_of_them_has_is_named() -> None:
    deliveries = [delivery(0, 9, "accepted"), delivery(20, 20, "open", at=50)]
    writes = [write(0, 0, (0, 4, 2, 1), at=SECOND), write(1, 0, (5, 5, 4, 1), (20, 20, 2, 1), at=9 * SECOND)]
    assert agreed(deliveries, writes) == [
        ("agree", "acknowledged", 1, 0, 4),
        ("only_recorded", "acknowledged", 1, 5, 9),
        ("only_written", "archived", 1, 5, 5),
    ]


def test_nothing_is_compared_with_only_one_of_them() -> None:
    assert agreed([], [write(0, 0, (0, 4, 2, 1))]) == [] and agreed([delivery(0, 1, "accepted")], []) == []
