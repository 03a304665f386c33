"""Divides captures among tasks: connections into buckets, and a bucket with too much for one task into stretches."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kafkascope.capture.base.flow import Endpoints
from kafkascope.capture.resume.stretch import ALL_PACKETS, Position, Stretch, stretches
from kafkascope.pipeline.ingestion.survey import FileSurvey

# What it costs to find and pair the frames of a byte, as a part of what a byte of a large message costs in all. The
# rest is reading bodies and writing rows. Each task of a bucket pays it up to its end.
_WALK, _LEAST_WALK = 0.5, 0.05
# A stretch is worth another pass over the packets if the slowest task takes this part of its time without it.
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
    sizes: dict[Endpoints, npt.NDArray[np.float64]] = {}
    for survey in surveys:
        # 0 if no packet of the sample has data.
        sampled = sum(flow.cost for flow in survey.flows) or 1
        for flow in survey.flows:
            own = np.array([flow.cost, _WALK * flow.bytes]) / sampled * _unread(survey)
            sizes[flow.ends] = sizes.get(flow.ends, 0) + own
    flows = sorted(sizes, key=lambda ends: (-sizes[ends][0], ends))
    costs = [sizes[ends] for ends in flows]
    filled = _filled(costs, [1] * tasks)
    while 1 in filled.counts and tasks > 1:
        slowest = int(filled.seconds.argmax())
        more = [count + (bucket == slowest) for bucket, count in enumerate(filled.counts)]
        singles = [bucket for bucket, count in enumerate(filled.counts) if count == 1 and bucket != slowest]
        if not singles:
            break
        del more[singles[-1]]
        candidate = _filled(costs, more)
        if candidate.seconds.max() >= _WORTH * filled.seconds.max():
            break
        filled = candidate
    placed = dict(zip(flows, filled.chosen, strict=True))
    buckets = zip(filled.counts, filled.walks, strict=True)
    return Division(
        placed,
        tuple(_stretches(surveys, placed, bucket, count, walk) for bucket, (count, walk) in enumerate(buckets)),
    )


def _unread(survey: FileSurvey) -> int:
    return survey.bytes - survey.read_bytes


class _Filled(NamedTuple):
    """`counts` are the tasks of each bucket, `seconds` how long they take, `walks` what part finds and pairs frames;
    `chosen` is the bucket of each flow."""

    counts: list[int]
    chosen: list[int]
    seconds: npt.NDArray[np.float64]
    walks: list[float]


def _filled(costs: Sequence[npt.NDArray[np.float64]], counts: list[int]) -> _Filled:
    tasks = np.array(counts)
    filled = np.zeros((len(counts), 2))
    chosen = []
    for cost in costs:
        bucket = int(_seconds(filled + cost, tasks).argmin())
        filled[bucket] += cost
        chosen.append(bucket)
    return _Filled(counts, chosen, _seconds(filled, tasks), _walks(filled).tolist())


def _seconds(filled: npt.NDArray[np.float64], tasks: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    seconds: npt.NDArray[np.float64] = filled[:, 0] * _time(_walks(filled), tasks)
    return seconds


def _walks(filled: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    # Of an empty bucket any will do.
    walks: npt.NDArray[np.float64] = np.maximum(filled[:, 1] / np.maximum(filled[:, 0], 1), _LEAST_WALK)
    return walks


def _time(walk: Any, count: Any) -> Any:
    """How long each of these tasks takes for a bucket that takes one task 1. Each but the first walks through what the
    ones before it read, so the stretches get shorter: with a walk of 0.28, those of two tasks are 0.58 and 0.42 of the
    bucket."""
    return walk / (1 - (1 - walk) ** count)


def _places(walk: float, count: int) -> Iterator[float]:
    """Where each task but the first begins, as a part of the bucket."""
    place = 0.0
    for _ in range(count - 1):
        place = place * (1 - walk) + _time(walk, count)
        yield place


def _stretches(
    surveys: Sequence[FileSurvey], placed: Mapping[Endpoints, int], bucket: int, count: int, walk: float
) -> tuple[Stretch, ...]:
    if count == 1:
        return (ALL_PACKETS,)
    own = [_own_part(survey, placed, bucket) for survey in surveys]
    sizes = [part * _unread(survey) for part, survey in zip(own, surveys, strict=True)]
    ends = np.cumsum(sizes)
    bounds = []
    for place in _places(walk, count):
        at = place * ends[-1]
        file = int(np.searchsorted(ends, at, side="right"))
        within = (at - ends[file] + sizes[file]) / own[file]
        bounds.append(Position(file, surveys[file].read_bytes + int(within)))
    return tuple(stretches(bounds))


def _own_part(survey: FileSurvey, placed: Mapping[Endpoints, int], bucket: int) -> float:
    """Which part of the sample of a file is this bucket's."""
    costs = [(flow.cost, placed[flow.ends] == bucket) for flow in survey.flows]
    total = sum(cost for cost, _ in costs)
    return sum(cost for cost, is_own in costs if is_own) / total if total else 0.0
