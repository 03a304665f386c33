"""Sums and percentiles by name against those of plain Python, however the rows come."""

import numpy as np
import pytest

from kafkascope.capture.query import tallies as tallies_module
from kafkascope.capture.query.tallies import (
    PERCENTILES,
    Measure,
    Tallies,
)


def some_rows(seed: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    numbers = random.integers(0, 1_000, (count, len(Measure)))
    numbers[:, Measure.LATENCY] = np.exp(random.uniform(-1, 12, count)).astype(np.int64)
    numbers[random.random(count) < 0.2, Measure.LATENCY] = -1
    return random.integers(0, 9, count), numbers, random.random(count) < 0.3


@pytest.mark.parametrize("most_waiting", [0, 50, 1 << 16])
def test_the_order_and_number_of_batches_does_not_matter(most_waiting: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies_module, "_MOST_WAITING", most_waiting)
    codes, numbers, polls = some_rows(1, 5_000)
    whole, parts = Tallies(), Tallies()
    names = [f"name {code}" for code in range(9)]
    whole.add(codes, names, numbers, polls)
    for start in range(0, 5_000, 170):
        some = slice(start, start + 170)
        # Each batch numbers the names in its own way.
        shift = start % 9
        turned = [*names[shift:], *names[:shift], "nobody"]
        parts.add((codes[some] - shift) % 9, turned, numbers[some], polls[some])
    assert dict(zip(whole, whole.summaries(), strict=True)) == dict(zip(parts, parts.summaries(), strict=True))
    assert set(parts) == set(names)


def test_sums_are_those_of_the_rows() -> None:
    codes, numbers, polls = some_rows(2, 2_000)
    tallies = Tallies()
    tallies.add(codes, list(range(9)), numbers, polls)
    for name, tally in zip(tallies, tallies.summaries(), strict=True):
        mine = numbers[codes == name]
        timed = mine[~polls[codes == name], Measure.LATENCY]
        timed = np.sort(timed[timed >= 0])
        assert tally.calls == tallies.calls()[name] == len(mine)
        sums = (tally.request_bytes, tally.response_bytes, tally.errors, tally.unanswered)
        assert sums == tuple(mine[:, : Measure.LATENCY].sum(axis=0).tolist())
        assert tally.slowest_us == timed[-1]
        for percent, percentile in zip(PERCENTILES, tally.percentiles, strict=True):
            true = int(timed[int(np.ceil(len(timed) * percent / 100)) - 1])
            assert percentile is not None and abs(percentile - true) <= max(1, true / 100)


def test_percentiles_of_the_others_are_those_of_all_their_calls() -> None:
    numbers = np.zeros((6, len(Measure)), np.int64)
    numbers[:, Measure.LATENCY] = [10, 5_000, 5_000, 5_000, 7, 2**63 - 1]
    tallies = Tallies()
    tallies.add(np.array([0, 1, 1, 1, 2, 3]), ["one", "other", "shown", "long"], numbers, None)
    shown, longest, others = tallies.summaries(["shown", "long"])
    assert (shown.calls, shown.percentiles) == (1, (7, 7, 7))
    assert longest.slowest_us == 2**63 - 1
    assert all(percentile is not None and abs(percentile / 2**63 - 1) < 0.01 for percentile in longest.percentiles)
    assert (others.calls, others.slowest_us) == (4, 5_000)
    assert others.percentiles == tallies.summaries()[1].percentiles
    assert [tally.calls for tally in tallies.summaries(["one", "other", "shown", "long"])] == [1, 3, 1, 1]


def test_no_latency_at_all() -> None:
    tallies = Tallies()
    assert tallies.summaries() == []
    tallies.add(np.array([0]), ["name"], np.full((1, len(Measure)), -1), None)
    (tally,) = tallies.summaries()
    assert tally.slowest_us is None
    assert tally.percentiles == (None, None, None)
