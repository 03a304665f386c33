"""Pairing comes to what its rules say, and its work does not depend on how many frames wait."""

from time import monotonic

import numpy as np
import numpy.typing as npt
import pytest

from kafkascope.capture.base.flow import (
    FrameKind,
)
from kafkascope.capture.exchanges.pairing import (
    LONGEST_WAIT_NS,
    ROW_COST,
    PairStatus,
    pair,
)
from kafkascope.capture.frames.headers import (
    NO_ROWS,
    Frame,
    FrameRows,
)
from tests.support.pairing_model import Outcome, paired

SEED = 15
CASES = 2_000
CONNECTIONS = 3
SECOND = 1_000_000_000


def kernel(rows: FrameRows, waiting: int, *, most_bytes: int, finish: bool) -> Outcome:
    pairs = pair(rows, waiting, CONNECTIONS, most_bytes=most_bytes, finish=finish)
    outcomes = zip(pairs.request.tolist(), pairs.response.tolist(), pairs.status.tolist(), strict=True)
    left = [(at, int(rows[at, Frame.AFTER_LOSS])) for at in pairs.left.tolist()]
    return Outcome(list(outcomes), left, pairs.lost_answers)


def some_rows(random: np.random.Generator, now: int) -> FrameRows:
    """Few correlation ids, so that many frames are alike; clocks that jump; losses and ends among them."""
    count = int(random.integers(0, 30))
    rows = np.zeros((count, len(Frame)), np.int64)
    rows[:, Frame.KIND] = random.choice(
        [FrameKind.FRAME, FrameKind.TOKEN, FrameKind.LOST, FrameKind.ENDED], count, p=random.dirichlet((9, 2, 2, 1))
    )
    rows[:, Frame.CONNECTION] = random.integers(0, CONNECTIONS, count)
    rows[:, Frame.RESPONSE] = random.integers(0, 2, count)
    rows[:, Frame.CORRELATION] = random.integers(-2, int(random.choice([0, 2, 20])), count) * (
        rows[:, Frame.KIND] == FrameKind.FRAME
    )
    rows[:, Frame.SIZE] = random.integers(0, 100, count)
    rows[:, Frame.NO_ANSWER] = random.random(count) < 0.05
    steps = random.choice([0, 1_000, SECOND // 3, 2 * SECOND, LONGEST_WAIT_NS // 4], count)
    rows[:, Frame.LAST_NS] = now + np.cumsum(steps) - random.integers(0, SECOND, count)
    rows[:, Frame.FIRST_NS] = rows[:, Frame.LAST_NS] - random.integers(0, 1_000, count)
    return rows


def test_kernel_pairs_as_the_rules_say() -> None:
    """Batch after batch, with what was left of the one before in front."""
    random = np.random.default_rng(SEED)
    for case in range(CASES):
        waits, now = NO_ROWS, 0
        for turn in range(3):
            rows = np.concatenate([waits, some_rows(random, now)])
            most = int(random.choice([1 << 40, 3 * ROW_COST, 12 * ROW_COST]))
            expected = paired(rows, len(waits), most_bytes=most, finish=turn == 2)
            outcome = kernel(rows, len(waits), most_bytes=most, finish=turn == 2)
            assert outcome == expected, f"seed {SEED}, case {case}, batch {turn}"
            waits = rows[[at for at, _ in outcome.left]]
            now = int(rows[:, Frame.LAST_NS].max()) if len(rows) else now


MANY = 200_000
# Work that grows with the square of the rows takes minutes here, and what it takes otherwise is a tenth of a second.
DEADLINE = 60


def frames(correlations: npt.NDArray[np.int64], *, response: bool) -> FrameRows:
    rows = np.zeros((len(correlations), len(Frame)), np.int64)
    rows[:, Frame.CORRELATION] = correlations
    rows[:, Frame.RESPONSE] = response
    return rows


def losses(count: int, *, response: bool) -> FrameRows:
    rows = np.zeros((count, len(Frame)), np.int64)
    rows[:, Frame.KIND] = FrameKind.LOST
    rows[:, Frame.RESPONSE] = response
    return rows


IDS = np.arange(MANY)
REQUESTS, RESPONSES = frames(IDS, response=False), frames(IDS, response=True)
HOSTILE = {
    "a loss after each response while all requests wait": ([REQUESTS, losses(MANY, response=True)], 0),
    "requests lost while all responses wait": ([RESPONSES, losses(MANY, response=False)], 0),
    "responses after one loss": ([REQUESTS, losses(1, response=True), RESPONSES], MANY),
    "requests after one loss": ([RESPONSES, losses(1, response=False), REQUESTS], MANY),
    "early responses, their requests in reverse": ([RESPONSES, REQUESTS[::-1]], MANY),
    "responses that fit nothing": ([REQUESTS, frames(IDS + MANY, response=True)], 0),
    "all alike": ([frames(IDS * 0, response=False), losses(1, response=True), frames(IDS * 0, response=True)], 1),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_work_does_not_depend_on_what_waits(name: str) -> None:
    parts, answered = HOSTILE[name]
    rows = np.concatenate(parts)
    start = monotonic()
    pairs = pair(rows, 0, CONNECTIONS, most_bytes=1 << 40, finish=True)
    assert monotonic() - start < DEADLINE
    assert int((pairs.status == PairStatus.ANSWERED).sum()) == answered
    used = np.concatenate([pairs.request[pairs.request >= 0], pairs.response[pairs.response >= 0]])
    assert sorted(used.tolist()) == np.flatnonzero(rows[:, Frame.KIND] == FrameKind.FRAME).tolist()
