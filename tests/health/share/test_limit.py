"""The delivery limit is the group's: what one of its partitions shows decides rows of another."""

from kafkascope.health.share.events import Delivery, ShareEvent
from kafkascope.health.share.ledger import Ledger
from kafkascope.health.share.limit import DeliveryLimit, LimitEvidence, decided, is_undecided, limit_of

MINUTE = 60_000_000


def released(partition: int, count: int) -> list[ShareEvent]:
    base = ShareEvent("acquired", 0, 0, "g", "fetch", "c", "b", "m", "app", "T", "orders", partition, 0, 4)
    acquired = base._replace(delivery_count=count, lock_timeout_ms=30_000)
    release = base._replace(kind="acknowledged", at_us=5, exchange_id="release", value=2, error_code=0)
    return [acquired, release]


def undecided(count: int) -> Delivery:
    (row,) = Ledger().deliveries(released(0, count))
    assert is_undecided(row)
    return row


def test_what_the_group_archives_elsewhere_decides_a_release() -> None:
    written = ShareEvent("state_written", 6, 0, "g", "w", None, "b", None, None, "T", None, 1, 0, 4, 4, 3)
    ledger = Ledger()
    (row,) = ledger.deliveries([*released(1, 3), written])
    assert row.archived and not is_undecided(row)
    limit = limit_of([ledger.evidence, LimitEvidence()])
    assert limit == DeliveryLimit(3, known=True)
    assert [decided(undecided(count), limit).archived for count in (2, 3, 4)] == [False, True, True]
    assert decided(undecided(3), limit).uncertain is None


def test_without_a_recorded_limit_a_row_says_so() -> None:
    limit = limit_of([LimitEvidence()])
    at_limit, below = decided(undecided(5), limit), decided(undecided(4), limit)
    assert (at_limit.archived, at_limit.uncertain) == (True, "limit_not_recorded")
    assert (below.archived, below.uncertain) == (False, None)


def test_a_higher_count_that_was_given_out_since_shows_a_higher_limit() -> None:
    archived = LimitEvidence(archived={3: 10})
    assert limit_of([archived, LimitEvidence(passed={4: 9})]) == DeliveryLimit(3, known=True)
    assert limit_of([archived, LimitEvidence(passed={4: 11, 7: 2})]) == DeliveryLimit(5, known=False)
    assert limit_of([archived, LimitEvidence(archived={6: 12})]) == DeliveryLimit(6, known=True)
    assert limit_of([LimitEvidence(passed={9: 1})]) == DeliveryLimit(10, known=False)
