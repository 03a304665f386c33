"""One ledger for each partition of a group says of every delivery what the simulated broker did, and what one ledger
for the whole group says."""

from dataclasses import astuple

import pytest

from kafkascope.health.share.events import Delivery
from kafkascope.health.share.ledger import share_deliveries
from tests.health.share_partitions import split, walked_apart
from tests.health.share_simulator import Simulation
from tests.health.test_share_simulated import expected_of, outcome_of

SEEDS = 300


@pytest.mark.parametrize("size", [1, 7])
def test_partitions_walked_apart_end_as_the_simulated_broker_did(size: int) -> None:
    compared = 0
    for seed in range(SEEDS):
        simulation = Simulation(seed, writes=True).run()
        events = list(split(simulation.events, size, len(simulation.records)))
        rows = walked_apart(events)
        context = f"seed {seed}, partitions of {size}"
        assert sorted(map(_text, rows)) == sorted(map(_text, share_deliveries(events))), context
        # A build that goes on from a checkpoint gives them no more.
        assert sorted(map(_text, walked_apart(events, since_touched=True))) == sorted(map(_text, rows)), context
        if any(event.kind == "forgotten" for event in events):
            # The simulated member forgets its only partition, and an acquisition brings it back: all of them, once
            # they are several.
            continue
        outcomes = sorted(
            outcome_of(row, offset) for row in rows for offset in range(row.first_offset, row.last_offset + 1)
        )
        expected = sorted(expected_of(truth) for truth in simulation.truths if truth.outcome != "gap")
        assert outcomes == expected, context
        compared += len({row.partition for row in rows}) > 1
    assert compared > SEEDS / 3


def _text(row: Delivery) -> str:
    return repr(astuple(row))
