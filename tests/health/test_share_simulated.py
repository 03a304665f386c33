"""The ledger says of every record of every delivery what the simulated broker did, and no offset twice."""

from collections import Counter

import pytest

from kafkascope.health.share.events import Delivery
from kafkascope.health.share.ledger import share_deliveries
from tests.health.share_simulator import LOCK_MS, Simulation, Truth

SEEDS = 400


@pytest.mark.parametrize("writes", [True, False], ids=["with_state_writes", "without_state_writes"])
def test_every_simulated_delivery_ends_as_it_did(writes: bool) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(SEEDS):
        simulation = Simulation(seed, writes=writes).run()
        # State writes tell the limit, else it has to be told.
        limit = None if writes else simulation.limit
        rows = list(share_deliveries(simulation.events, delivery_limit=limit))
        outcomes = sorted(
            outcome_of(row, offset) for row in rows for offset in range(row.first_offset, row.last_offset + 1)
        )
        expected = sorted(expected_of(truth) for truth in simulation.truths if truth.outcome != "gap")
        assert outcomes == expected, f"seed {seed}, writes {writes}"
        for row in rows:
            assert row.rule != "unexplained", f"seed {seed}, writes {writes}: {row}"
            if row.outcome == "lock_expired":
                late = row.outcome_at - _truth(simulation, row).outcome_at  # type: ignore[operator]
                assert abs(late) <= 1_000_000, f"seed {seed}, writes {writes}: {row}"
        kinds.update(row.outcome for row in rows)
    assert len(kinds) == 8, kinds


Outcome = tuple[int, int, str, str, str, int, bool]


def outcome_of(row: Delivery, offset: int) -> Outcome:
    assert row.delivery_count is not None and row.member_id is not None and row.acquire_exchange_id is not None
    return (
        offset,
        row.delivery_count,
        row.acquire_exchange_id,
        row.member_id,
        row.outcome,
        row.renewals,
        row.archived,
    )


def _truth(simulation: Simulation, row: Delivery) -> Truth:
    place = (row.first_offset, row.acquire_exchange_id)
    return next(truth for truth in simulation.truths if (truth.offset, truth.exchange) == place)


def expected_of(truth: Truth) -> Outcome:
    return (
        truth.offset,
        truth.count,
        truth.exchange,
        truth.member,
        truth.outcome,
        truth.renewals,
        truth.archived,
    )


def test_the_simulated_lock_is_as_long_as_the_answers_say() -> None:
    rows = list(share_deliveries(Simulation(3, writes=True).run().events))
    assert {row.lock_timeout_ms for row in rows} == {LOCK_MS}
