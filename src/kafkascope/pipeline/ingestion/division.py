"""Divides captures among tasks: connections into buckets, and a bucket with too much for one task into stretches."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.flow import Endpoints
from kafkascope.capture.resume.stretch import ALL_PACKETS, Position, Stretch, stretches
from kafkascope.pipeline.ingestion.survey import FileSurvey

# What finding and pairing the frames of a connection costs, as a part of all. The rest is reading bodies and writing
# rows. Each task of a bucket pays it up to its end: 0.17 for a share consumer, 0.3 for a follower.
WALK = 0.28
# A stretch is worth another pass over the packets if the slowest task takes this part of its time without it. No bucket
# has more than six: they take 1.16 times as long as any number would.
_WORTH = 0.95


@dataclass(frozen=True, slots=True)
class Division:
    """`placed` assigns sampled flows to buckets; others are assigned by hash. `stretches` are those of each bucket, a
    task each."""

    placed: Mapping[Endpoints, int]
    stretches: tuple[tuple[Stretch, ...], ...]


def divided(surveys: Sequence[FileSurvey], tasks: int) -> Division:
    """Assigns flows to buckets, the largest first, each to the one that is done first: one connection may have nearly
    half of all bytes, or all of them. The slowest bucket gets another task as long as that helps."""
    sizes: dict[Endpoints, float] = {}
    for survey in surveys:
        sampled = sum(cost for _, cost in survey.flows)
        for ends, cost in survey.flows:
            sizes[ends] = sizes.get(ends, 0) + cost / sampled * _unread(survey)
    flows = sorted(sizes, key=lambda ends: (-sizes[ends], ends))
    costs = [sizes[ends] for ends in flows]
    counts = [1] * tasks
    chosen, seconds = _filled(costs, counts)
    while 1 in counts and len(counts) > 1:
        slowest = int(seconds.argmax())
        more = [count + (bucket == slowest) for bucket, count in enumerate(counts)]
        singles = [bucket for bucket, count in enumerate(counts) if count == 1 and bucket != slowest]
        if not singles:
            break
        del more[singles[-1]]
        candidate, candidate_seconds = _filled(costs, more)
        if candidate_seconds.max() >= _WORTH * seconds.max():
            break
        counts, chosen, seconds = more, candidate, candidate_seconds
    placed = dict(zip(flows, chosen, strict=True))
    return Division(placed, tuple(_stretches(surveys, placed, bucket, count) for bucket, count in enumerate(counts)))


def _unread(survey: FileSurvey) -> int:
    return survey.bytes - survey.read_bytes


def _filled(costs: Sequence[float], counts: Sequence[int]) -> tuple[list[int], npt.NDArray[np.float64]]:
    """(the bucket of each flow, the time of each bucket)"""
    rates = np.array([_time(count) for count in counts])
    filled = np.zeros(len(counts))
    chosen = []
    for cost in costs:
        bucket = int(((filled + cost) * rates).argmin())
        filled[bucket] += cost
        chosen.append(bucket)
    return chosen, filled * rates


def _time(count: int) -> float:
    """How long each of these tasks takes for a bucket that takes one task 1. Each but the first walks through what the
    ones before it read, so the stretches get shorter: those of two tasks are 0.57 and 0.43 of the bucket."""
    return WALK / (1 - (1 - WALK) ** count)


def _places(count: int) -> Iterator[float]:
    """Where each task but the first begins, as a part of the bucket."""
    place = 0.0
    for _ in range(count - 1):
        place = place * (1 - WALK) + _time(count)
        yield place


def _stretches(
    surveys: Sequence[FileSurvey], placed: Mapping[Endpoints, int], bucket: int, count: int
) -> tuple[Stretch, ...]:
    if count == 1:
        return (ALL_PACKETS,)
    own = [_own_part(survey, placed, bucket) for survey in surveys]
    sizes = [part * _unread(survey) for part, survey in zip(own, surveys, strict=True)]
    ends = np.cumsum(sizes)
    bounds = []
    for place in _places(count):
        at = place * ends[-1]
        file = int(np.searchsorted(ends, at, side="right"))
        within = (at - ends[file] + sizes[file]) / own[file]
        bounds.append(Position(file, surveys[file].read_bytes + int(within)))
    return tuple(stretches(bounds))


def _own_part(survey: FileSurvey, placed: Mapping[Endpoints, int], bucket: int) -> float:
    """Which part of the sample of a file is this bucket's."""
    costs = [(cost, placed[ends] == bucket) for ends, cost in survey.flows]
    total = sum(cost for cost, _ in costs)
    return sum(cost for cost, is_own in costs if is_own) / total if total else 0.0
