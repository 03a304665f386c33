"""Times calls in turns, round after round. The best round of each counts."""

import gc
from collections.abc import Callable
from itertools import repeat
from time import perf_counter
from typing import Any

ROUNDS = 9
_SECONDS_A_ROUND = 0.02


def best(calls: list[Callable[[], Any]], *, with_gc: bool, rounds: int = ROUNDS) -> list[float]:
    """Every result is dropped before the next call, for all alike. Between rounds the collector runs, untimed."""
    counts = [_count(call) for call in calls]
    least = [float("inf")] * len(calls)
    was_on = gc.isenabled()
    try:
        for _ in range(rounds):
            for index, call in enumerate(calls):
                gc.collect()
                (gc.enable if with_gc else gc.disable)()
                least[index] = min(least[index], _round(call, counts[index]))
    finally:
        (gc.enable if was_on else gc.disable)()
    return least


def _count(call: Callable[[], Any]) -> int:
    call()
    once = min(_round(call, 1) for _ in range(3))
    return max(1, int(_SECONDS_A_ROUND / max(once, 1e-7)))


def _round(call: Callable[[], Any], count: int) -> float:
    start = perf_counter()
    for _ in repeat(None, count):
        call()
    return (perf_counter() - start) / count
