"""Batches against a model of brokers and of Spark: however often it crashes and whatever brokers lose, the sink has
each record once more than it was released, and nothing is accepted that the sink doesn't have."""

import pytest

from tests.pipeline.share.query_model import Query

SEEDS = range(60)
STEPS, MOST_STEPS = 800, 20_000


@pytest.mark.parametrize("seed", SEEDS)
def test_no_crash_or_loss_doubles_or_loses_a_record(seed: int) -> None:
    query = Query(seed, renews=seed % 4 != 0)
    for _ in range(STEPS):
        query.step()
        accepted_are_in_the_sink(query)
        once(query)
        committed_are_acknowledged(query)
    query.model.faults = False
    steps = 0
    while not all(query.model.partitions[partition].offsets[number].done for partition, number in query.offsets()):
        steps += 1
        assert steps < MOST_STEPS, "records are left"
        query.step()
    accepted_are_in_the_sink(query)
    once(query)
    assert set(query.rows) == set(query.offsets())
    assert query.restarts


def accepted_are_in_the_sink(query: Query) -> None:
    for partition, number in query.offsets():
        if query.model.partitions[partition].offsets[number].done:
            assert query.rows[partition, number], f"{partition.partition}-{number} is done and the sink lacks it"


def committed_are_acknowledged(query: Query) -> None:
    """What is locked for us and was in a committed batch isn't kept locked."""
    batches = query.batches
    if batches is None:
        return
    batches.before_poll(query.model.now)
    for partition, acquired, _ in batches.member.waiting():
        kept = list(batches.ledger.known(partition, acquired.first, acquired.last))
        assert not kept, f"{partition.partition}: {kept} is committed and still held"


def once(query: Query) -> None:
    for place, count in query.rows.items():
        assert count <= 1 + query.released[place], f"{place[0].partition}-{place[1]} is in the sink {count} times"
